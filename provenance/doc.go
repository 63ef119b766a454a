// Package provenance is the record of a rewrite that stands in the metadata of the
// model that was written: what was done, with every parameter resolved, and what the
// model was before. Whoever meets the file later can read it, and a next rewrite starts
// from the original values.
//
// Start with Read. Record is the schema; docs/provenance.md describes the JSON.
package provenance
