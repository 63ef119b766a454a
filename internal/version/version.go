// Package version says which build of the project a program is.
package version

import (
	"runtime/debug"

	"github.com/rope-rewrite/rope-rewrite/customop"
)

// Tool returns the release, and the revision that it was built from where the build
// knows it: "0.1.0 (1a2b3c4d5e6f)", "0.1.0 (1a2b3c4d5e6f, changed)".
func Tool() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return customop.Version
	}
	return text(customop.Version, info.Settings)
}

func text(release string, settings []debug.BuildSetting) string {
	revision, changed := "", ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = ", changed"
		}
	}
	if revision == "" {
		return release
	}
	return release + " (" + revision + changed + ")"
}
