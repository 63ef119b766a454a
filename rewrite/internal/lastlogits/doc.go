// Package lastlogits makes a model compute the logits of only one token per row.
//
// A model computes logits [batch, length, vocabulary] for all tokens of a call, and
// generation reads those of one: with 128,000 words and a prompt of 32,000 tokens that is
// 16 GB for nothing. The head is the product with weights that makes logits from hidden
// states [batch, length, hidden size]. Rows that are taken out of the hidden states before
// it give the same logits as rows that are taken out behind it, if the product and
// everything behind it works on each token by itself.
//
// Find takes the view of a model's graph and gives a Head: back from the one output with
// a row for each token, to the one product with weights, and the hidden states that it
// reads. It refuses models whose output is given by a branch or is made of several
// products, and products that quantise all tokens together.
//
// Prove measures that the hidden states have one row for each token, and runs what stands
// behind the product on random numbers: on all tokens, and on chosen ones alone. Both
// must give the same, bit for bit. The product itself needs no run: it sums over the last
// dimension.
//
// Write puts the choice into the model, with an input that says which token is meant.
// Undo takes it out again.
//
// It stands above eval and is used by the facade alone. Start with Find (find.go); prove.go
// and write.go are the other two steps.
package lastlogits
