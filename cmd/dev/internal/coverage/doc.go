// Package coverage looks at small exports of many architectures: which of their
// attention layers are rewritten, why others are left unchanged, and whether the
// patched model computes what the original does. scripts/coverage makes the
// exports, cmd/coverage runs over all of them, testdata/coverage holds a few.
//
// Start with Look, which takes the folder of one export.
package coverage
