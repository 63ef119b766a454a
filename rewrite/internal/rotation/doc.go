// Package rotation measures what a graph does to one query or key: which pairs of
// channels it rotates, by which frequencies, and by what factor it multiplies.
//
// A Rotator takes a loaded piece from the un-rotated vector to the rotated one, with the
// layouts of both. It feeds basis vectors at chosen positions. Measure reads the channel
// layout, the frequencies and the gain from the results at positions 2^k, and then
// compares the encoding that it found with the piece at thousands of positions. The
// result is a Matrix. Nothing is read from the exporter's tables or from names.
//
// It refuses whatever is not a rotation of pairs with the same frequencies for all heads,
// all positions and all lengths, with an error that names the first difference. Where
// frequencies change with the length, the error names that length (lengthdependent.go),
// and where sizes change with the position, as xPos has it, it names by how much (decay.go).
// Frequencies that follow the largest position of a call are measured by it (byreach.go,
// calls.go): two lists, or the formula of dynamic NTK (dynamicntk.go).
// In 16 bits frequencies are known roughly only; halfprecision.go finds what they are.
//
// Models without a cache and without a position input rotate each token by its index;
// ByPlace computes the rows of all indices once (tables.go); Explain says what changes where calls of
// other lengths have other rows (changes.go). Where a token has several
// positions, Measure also finds which of them rotates each pair (sections.go). Factors on
// the channels after the rotation are divided out of everything (factors.go).
//
// It stands above eval and bisect, below measure. Start with Rotator (rotator.go) and
// Measure (measure.go), then fit.go and check.go.
package rotation
