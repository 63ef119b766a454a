// Package earlier reads what an earlier rewrite left in a model: its record (package provenance) and the
// nodes of its op. A rewrite of such a model starts from the original values in the record, or, where it
// is asked to add to the earlier one, from what the ops compute now. Start with Read.
package earlier
