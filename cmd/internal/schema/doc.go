// Package schema says in JSON Schema what encoding/json makes of a Go type: one schema for each command
// with --json is made of the types that it prints.
//
// Lists and maps are never null there: cli.PrintJSON writes empty ones in their place.
package schema
