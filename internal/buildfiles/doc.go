// Package buildfiles finds the libraries that make build leaves in build/, for
// programs of this repository that are run from its source tree:
//
//	err := customop.InitRuntime(buildfiles.Find(customop.RuntimeVariable))
//
// The tree is the one that the program was compiled from, not the working
// directory, in which a downloaded model's folder may bring a build/ of its own.
package buildfiles
