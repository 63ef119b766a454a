// Demo shows on two small real exports what rope-rewrite does, and checks it:
// `make demo` runs it after `make build`, in the repository's root.
//
// It runs the command that was built, as a user would, and then the patched
// models: without a method against the original, with YaRN against what
// transformers computes, with STRING against an eager reference. The exit code
// is 1 when anything is off.
package main
