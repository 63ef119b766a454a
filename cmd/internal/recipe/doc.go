// Package recipe reads and writes recipes: what a rewrite is asked for, as a YAML file that
// can be stored beside a model and reviewed.
//
// Start with Parse. A Recipe is a list of the command's flags with the lines on which they stand;
// what their values mean is the command's matter. Of gives the recipe of a model that was rewritten.
// schema.json is the format's JSON Schema, and the only place that lists its keys.
package recipe
