// Package encoding has the position encodings beside plain rotary attention as values: what each
// adds, multiplies or rotates at a position or a distance, in float64.
//
// Encodings of one kind have the same form. A bias on the scores is a struct for one head with
// Bias(distance), where the distance goes from a query back to a key and is negative for a later
// key. A table that is added to embeddings has At(position). What turns or decays has the angles
// or factors of a position.
//
//	slopes := encoding.Slopes(8)                         // ALiBi's, for 8 heads
//	bias := encoding.ALiBi{Slope: slopes[0]}.Bias(100)   // of head 0, 100 tokens back
//
// Where package rewrite recognises an encoding in a model, it compares the model with these
// values. [All] lists the encodings.
package encoding
