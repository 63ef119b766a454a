// Package control looks at the integers in a piece of a graph: sizes, padding, positions and what is computed
// of them to decide who sees whom. Numbers that are drawn at random hardly meet a rule that holds at one length
// alone; integers can be tried without sampling, as long as they are small.
//
// It takes a Piece of package eval. Of gives its Part: the numbers that the piece compares integers with, which
// may be large (a window of 4,096), and whether it does anything but compare, add and slice. Part.Copies are
// pieces with a small number in the place of each large one, in the same order. What holds in every small call
// of every copy, and follows from comparing and adding alone, holds in large calls too.
//
// RowsApart shows by the graph that a row of a batch depends on its own row of the inputs. All paddings of one
// row are then all there are.
//
// It stands above eval, below rotation and score, which run the pieces. Start with Part in part.go.
package control
