// Package bundled builds the op library into a program, so that it is one file:
//
//	import _ "github.com/rope-rewrite/rope-rewrite/customop/bundled"
//
// customop then unpacks the library, by its checksum, into the user's cache folder when it is first
// looked for. Where there is no such folder, or no code may run from there, it takes a folder for this
// user alone among temporary files; where that fails too, the error says what to set. A library that is
// there already is compared to the byte, and none is taken from a folder that another user may change.
// A library that is named (customop.Options, ROPE_OPS_LIBRARY) or that stands beside the
// executable comes before it.
//
// The repository has no binaries, so by itself this package has none. A release has the
// sources with the libraries of five platforms in this folder (rope-rewrite-bundled-VERSION.tar.gz): unpack it,
// point go.mod at it with a replace, and build with -tags bundled.
//
// Like time/tzdata, the package works by being imported.
package bundled
