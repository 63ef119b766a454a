package main

import (
	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/version"
)

// versions is what version says: of this command, and of what it finds to work with.
type versions struct {
	version.Info
	Runtime versionOf `json:"onnxruntime"`
	Library versionOf `json:"ops_library"`
	Target  string    `json:"cpu_target,omitempty"` // instructions that the library's kernels use here
	Carried bool      `json:"carries_library"`      // this program has an op library inside
	Specs   [2]int    `json:"op_specs"`             // oldest and newest specification that it writes
}

// versionOf is something that was found, or why it was not.
type versionOf struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Specs   [2]int `json:"op_specs,omitzero"` // of the op library: oldest and newest that it runs
	Problem string `json:"problem,omitempty"`
}

func newVersion(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this command and of what it finds to work with",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := c.versions()
			return c.show(cmd, v, v.say)
		},
	}
}

func (c *common) versions() *versions {
	v := &versions{Info: version.This(), Carried: customop.Carries(), Specs: [2]int{1, customop.SpecVersion}}
	v.Runtime = c.runtimeVersion()
	path, err := customop.FindLibrary(customop.Options{Library: c.library})
	if err != nil {
		v.Library.Problem = brieflyMissing(err).Error()
		return v
	}
	v.Library.Path = path
	info, err := customop.InspectLibrary(path)
	if err == nil {
		v.Library.Version, v.Library.Specs = info.Version, [2]int{1, info.SpecVersion}
		v.Target, err = customop.CPUTarget(path)
	}
	if err != nil {
		v.Library.Problem = err.Error()
	}
	return v
}

// runtimeVersion asks ONNX Runtime in a process of its own, which it may end.
func (c *common) runtimeVersion() (of versionOf) {
	path, err := customop.FindRuntime(c.runtime)
	if err != nil {
		return versionOf{Problem: brieflyMissing(err).Error()}
	}
	of.Path = path
	worker, err := self()
	if err != nil {
		of.Problem = err.Error()
		return of
	}
	eng, err := engine.NewWorker(engine.Config{Runtime: path}, worker)
	if err != nil {
		of.Problem = err.Error()
		return of
	}
	of.Version = eng.Version()
	eng.Close() // it was asked for its version alone
	return of
}

func (v *versions) say(w *writer) {
	text := v.String()
	if v.Revision == "" {
		text += " (revision unknown)"
	}
	w.line("rope-rewrite %s", text)
	w.line("writes op specifications 1 to %d", v.SpecVersion)
	w.line("built with %s for %s", v.Go, v.System)
	found := func(what string, of versionOf, more string) {
		if of.Problem != "" {
			w.line("%s", wrap(of.Problem, "  "))
			return
		}
		w.line("%s", wrap(what+" "+of.Version+more+": "+of.Path, "  "))
	}
	found("ONNX Runtime", v.Runtime, "")
	more := ""
	if v.Target != "" {
		more = " (" + v.Target + ")"
	}
	found("op library", v.Library, more)
}
