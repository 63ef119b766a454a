package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/customop"
)

// versionInfo is what the command says of itself.
type versionInfo struct {
	Version     string `json:"version"`
	Revision    string `json:"revision"` // of the sources; empty where the build does not tell
	Modified    bool   `json:"modified"` // the sources were changed after that revision
	SpecVersion int    `json:"spec_version"`
	Go          string `json:"go"`
	System      string `json:"system"`
}

func thisVersion() versionInfo {
	v := versionInfo{Version: customop.Version, SpecVersion: customop.SpecVersion, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
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

func newVersion(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this command, and what it was built from",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := thisVersion()
			if c.json {
				return printJSON(cmd.OutOrStdout(), v)
			}
			w := &writer{out: cmd.OutOrStdout()}
			from := "revision unknown"
			if v.Revision != "" {
				from = "revision " + v.Revision[:min(12, len(v.Revision))]
			}
			if v.Modified {
				from += " with changes"
			}
			w.line("rope-rewrite %s (%s)", v.Version, from)
			w.line("writes op specifications 1 to %d", v.SpecVersion)
			w.line("built with %s for %s", v.Go, v.System)
			return w.err
		},
	}
}
