// Package provenance reads and writes the record of a rewrite, which is in the metadata
// of a rewritten model: what was done, with every parameter resolved, and what the
// model was before. The record can be read later, and the next rewrite starts from the
// original values.
//
// Start with Read. Record is the schema; docs/provenance.md describes the JSON.
package provenance
