package main

import (
	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/version"
)

// versions is what version says of this command and of the libraries that it finds.
type versions struct {
	version.Info
	Runtime versionOf `json:"onnxruntime"`
	Library versionOf `json:"ops_library"`
	Target  string    `json:"cpu_target,omitempty"` // instructions that the library's kernels use here
	Bundled bool      `json:"contains_library"`     // this program has an op library inside
	Specs   [2]int    `json:"op_specs"`             // oldest and newest specification that it writes
}

// versionOf is something that was found, or why it was not.
type versionOf struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Specs   [2]int `json:"op_specs,omitzero"` // of the op library: oldest and newest that it runs
	Problem string `json:"problem,omitempty"`
}

func newVersion(c *cli.Common) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this command, ONNX Runtime and the op library",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := findVersions(c)
			return c.Show(cmd, v, v.say)
		},
	}
	c.Prints(cmd, versions{})
	return cmd
}

func findVersions(c *cli.Common) *versions {
	v := &versions{Info: version.This(), Bundled: customop.Carries(), Specs: [2]int{1, customop.SpecVersion}}
	v.Runtime = runtimeVersion(c)
	path, err := customop.FindLibrary(customop.Options{Library: c.Library})
	if err != nil {
		v.Library.Problem = cli.BrieflyMissing(err).Error()
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
func runtimeVersion(c *cli.Common) (of versionOf) {
	path, err := customop.FindRuntime(c.Runtime)
	if err != nil {
		return versionOf{Problem: cli.BrieflyMissing(err).Error()}
	}
	of.Path = path
	worker, err := cli.Self()
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

func (v *versions) say(w *cli.Writer) {
	text := v.String()
	if v.Revision == "" {
		text += " (revision unknown)"
	}
	w.Line("rope-rewrite %s", text)
	w.Line("writes op specifications 1 to %d", v.SpecVersion)
	w.Line("built with %s for %s", v.Go, v.System)
	found := func(what string, of versionOf, more string) {
		if of.Problem != "" {
			w.Line("%s", cli.Wrap(of.Problem, "  "))
			return
		}
		w.Line("%s", cli.Wrap(what+" "+of.Version+more+": "+of.Path, "  "))
	}
	found("ONNX Runtime", v.Runtime, "")
	more := ""
	if v.Target != "" {
		more = " (" + v.Target + ")"
	}
	found("op library", v.Library, more)
}
