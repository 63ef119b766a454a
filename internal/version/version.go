// Package version says which build of the project a program is.
package version

import (
	"runtime"
	"runtime/debug"

	"github.com/rope-rewrite/rope-rewrite/customop"
)

// revision is set by release builds, which are made from sources without a repository.
var revision string

// Info is what a program knows of its own build.
type Info struct {
	Version     string `json:"version"`
	Revision    string `json:"revision"` // of the sources; empty where the build does not tell
	Modified    bool   `json:"modified"` // the sources were changed after that revision
	SpecVersion int    `json:"spec_version"`
	Go          string `json:"go"`
	System      string `json:"system"`
}

// This returns what this program knows.
func This() Info {
	v := Info{Version: customop.Version, SpecVersion: customop.SpecVersion, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Revision: revision}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// String returns the version and, where it is known, the revision: "0.1.0 (1a2b3c4d5e6f)",
// "0.1.0 (1a2b3c4d5e6f with changes)".
func (v Info) String() string {
	if v.Revision == "" {
		return v.Version
	}
	changes := ""
	if v.Modified {
		changes = " with changes"
	}
	return v.Version + " (" + v.Revision[:min(12, len(v.Revision))] + changes + ")"
}
