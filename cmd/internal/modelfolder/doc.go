// Package modelfolder rewrites all models of a model folder into a new, complete folder: the
// configurations beside the models describe the new models, and tokenizers and weights come
// along.
//
// Start with Prepare. It verifies and changes every model in memory and plans the rest.
// Folder.Write then makes the new folder, all of it or nothing. The input folder is never
// changed.
//
// The new folder's rope_rewrite.json records the changes of configurations, so that a later
// rewrite starts from the original values.
package modelfolder
