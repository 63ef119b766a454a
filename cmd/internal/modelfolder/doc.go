// Package modelfolder rewrites all models of a folder, as exporters and model hubs leave
// them, into a new folder that is complete: the configurations beside the models say what
// these now are, and tokenizers and weights come along.
//
// Start with Prepare. It proves and changes every model in memory and plans the rest;
// Folder.Write then makes the new folder, all of it or nothing. The folder that was read is
// never touched.
//
// What was changed in configurations stands in the new folder's rope_rewrite.json, so that a
// folder that is rewritten again starts from what it was before.
package modelfolder
