// Package analysis says what the attention layers of a model compute. Find finds the sites and delimits
// them. Measure measures each and proves that the fused op computes the same. A site that the op cannot
// replace is unchanged, with a kind and a reason. The model is not changed.
//
//	found, err := analysis.Find(ctx, model, engine, options)
//	a, err := found.Measure(ctx)
//	for _, s := range a.Sites { … }
//
// Sites of one structure are measured and proven once. A model that was rewritten before is not measured:
// OfEarlier takes its sites from the record.
package analysis
