// Package bisect finds how far a graph can be evaluated: tables in it have an end, and
// some of it is computed otherwise from some length on.
//
// Farthest takes a function of a length and gives its result for the largest length for
// which it does not fail. Largest gives the last number for which something holds. Both
// halve the interval, so a limit among 131,072 lengths takes 17 runs. Ended tells an error
// of the evaluation, a timeout or memory that is refused, from one of the graph: a search
// ends with the first of the former. Shortest gives the number of an interval that was most
// likely meant.
//
// It stands above bound, whose errors it knows, and below rotation, score and measure.
// Everything is in search.go.
package bisect
