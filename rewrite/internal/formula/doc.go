// Package formula reads what a piece of a graph decides as a formula, and decides for any number of tokens whether
// that is what was measured.
//
// Trying calls shows what a mask is in these calls. A condition that holds at 1,000 tokens alone, or where three sizes
// are as far apart as the graph wants, is in none of them. But masks are simple: whether a query sees a key follows
// from comparing places and sizes. So each element of the mask is read as a term (term.go): a tree of questions, each
// about a Form (form.go), with a constant at its end. What is understood is a closed list:
//
//   - sizes: batch, length and past, as Shape nodes give them where no condition shapes anything on the way (sizes.go):
//     arguments of Reshape and the like are sums that are never below 0, in int32 or int64, and no Slice or Range ends
//     early in a shorter call;
//   - places: the elements of a Range with steps of 1, the index along a dimension, and sums of these, sizes and
//     constants;
//   - truths: comparisons of such sums, and And, Or, Not, Xor and Where of truths (ops.go);
//   - the padding mask, at the place of the key or of the query, however the graph finds it (places.go);
//   - constants, of which four sums of places are still exact in float32; and symbols, which are not looked into: elements of tables, counts of tokens.
//
// Everything else is Unread, with the node that is not understood.
//
// Reader.Decide compares a term with a mask. Every question has the form x − y ≤ c, with x and y among the places and
// sizes of a row. Answers that are possible at all are so at a vertex, where each place is tied to another one by a
// constant of a question; there are few vertices, and all are looked at. So the result holds for every number of
// tokens, cached tokens and rows for which the runtime's numbers are exact: 2²¹ tokens.
//
// Reader.Turns says of a rotation, or of the way of keys, values and probabilities, that hidden states meet nothing but
// what is computed of one position for each token, by another closed list (turns.go); Reader.Counts and Reader.Lengths
// of positions and lengths that they count tokens.
//
// It stands above eval, below score and measure, which ask. Start with Reader (reader.go) and Decide (decide.go).
package formula
