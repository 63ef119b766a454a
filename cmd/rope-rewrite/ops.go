package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
)

func newOps(c *common) *cobra.Command {
	ops := &cobra.Command{
		Use:   "ops path|version|install",
		Short: "Say where the op library is and what it knows, or install it",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("ops %s? path, version or install was expected%s", args[0], suggest.Hint(args[0], []string{"path", "version", "install"}))
			}
			return usageError("ops what? path, version or install was expected")
		},
		RunE: func(*cobra.Command, []string) error { return nil }, // Args lets nothing through
	}
	ops.AddCommand(
		&cobra.Command{
			Use: "path", Short: "Print the path of the op library", Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				path, err := customop.FindLibrary(customop.Options{Library: c.library})
				if err != nil {
					return err
				}
				if c.json {
					return printJSON(cmd.OutOrStdout(), map[string]string{"path": path})
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
				return err
			},
		},
		&cobra.Command{
			Use:   "version [MODEL.onnx]",
			Short: "Print the versions of the op library, and which one a model needs",
			Args: func(cmd *cobra.Command, args []string) error {
				if len(args) == 0 {
					return nil
				}
				return misplaced(cmd, args)
			},
			RunE: func(cmd *cobra.Command, args []string) error { return c.opsVersion(cmd, args) },
		},
		&cobra.Command{
			Use: "install DIR", Short: "Write the op library into a folder, for hosts that load it from there",
			Args: func(_ *cobra.Command, args []string) error {
				if len(args) != 1 {
					return usageError("ops install takes one folder; write rope-rewrite ops install DIR")
				}
				return nil
			},
			RunE: func(cmd *cobra.Command, args []string) error { return c.opsInstall(cmd, args[0]) },
		},
	)
	return ops
}

// opsInstall writes the library that this command carries, else the one that it finds, into a
// folder.
func (c *common) opsInstall(cmd *cobra.Command, folder string) error {
	if info, err := os.Stat(folder); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is no folder", folder)
	}
	var path string
	var err error
	if c.library == "" && customop.Carries() {
		path, err = customop.Unpack(folder)
	} else {
		path, err = c.copyLibrary(folder)
	}
	if err != nil {
		return err
	}
	return c.show(cmd, map[string]string{"path": path}, func(w *writer) { w.line("%s", path) })
}

// copyLibrary copies the library that is found into a folder.
func (c *common) copyLibrary(folder string) (string, error) {
	from, err := customop.FindLibrary(customop.Options{Library: c.library})
	if err != nil {
		return "", err
	}
	data, err := configfile.Read(from, configfile.Library)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(folder, customop.LibraryFile())
	if there, err := os.Stat(path); err == nil {
		if original, err := os.Stat(from); err == nil && os.SameFile(there, original) {
			return path, nil
		}
	}
	return path, customop.PlaceLibrary(path, data)
}

// opsVersions is what ops version --json prints.
type opsVersions struct {
	customop.LibraryInfo
	Writes int    `json:"writes"`          // newest specification that this command writes
	Model  string `json:"model,omitempty"` // as it was given
	Nodes  int    `json:"nodes,omitempty"` // of the op in the model
	Needs  int    `json:"needs,omitempty"` // specification that a library must know to run the model; 0 if it has no such node

	Defined bool `json:"defined,omitempty"` // the model carries the op's definition, by which it runs without a library
}

func (c *common) opsVersion(cmd *cobra.Command, args []string) error {
	path, err := customop.FindLibrary(customop.Options{Library: c.library})
	if err != nil {
		return err
	}
	info, err := customop.InspectLibrary(path)
	if err != nil {
		return err
	}
	v := opsVersions{LibraryInfo: info, Writes: customop.SpecVersion}
	if len(args) > 0 {
		if err := v.ask(args[0]); err != nil {
			return err
		}
	}
	if c.json {
		if err := printJSON(cmd.OutOrStdout(), v); err != nil {
			return err
		}
	} else {
		w := &writer{out: cmd.OutOrStdout()}
		v.say(w)
		if w.err != nil {
			return w.err
		}
	}
	if v.Needs > v.SpecVersion {
		return &exitError{exitFailed, errReported}
	}
	return nil
}

// ask counts the op's nodes of a model and what they need.
func (v *opsVersions) ask(path string) error {
	model, err := onnx.Open(path)
	if err != nil {
		return err
	}
	defer model.Close()
	v.Model = path
	count := func(g *onnx.Graph) {
		for n := range g.AllNodes() {
			if n.Domain == customop.Domain {
				v.Nodes++
				v.Needs = max(v.Needs, int(n.Int("spec_version", 1)))
			}
		}
	}
	count(model.Graph)
	v.Defined = definition.Of(model) != nil
	for _, f := range model.Functions {
		count(&onnx.Graph{Nodes: f.Nodes})
	}
	return nil
}

func (v *opsVersions) say(w *writer) {
	w.line("%s", v.Path)
	w.line("%s", wrap(fmt.Sprintf("library %s, op specifications 1 to %d; this command writes 1 to %d, for each model the oldest that says what it needs", v.Version, v.SpecVersion, v.Writes), "  "))
	switch {
	case v.Model == "":
	case v.Nodes == 0:
		w.line("%s", wrap(v.Model+" needs no op library: it has no op of rope-rewrite.", "  "))
	case v.Needs > v.SpecVersion:
		w.line("%s", wrap(fmt.Sprintf("%s needs specification %d, which this library does not know: take a newer one, or rewrite the original with the command that belongs to this one.", v.Model, v.Needs), "  "))
	default:
		w.line("%s", wrap(fmt.Sprintf("%s needs specification %d: this library runs it.", v.Model, v.Needs), "  "))
	}
	switch {
	case v.Nodes == 0:
	case v.Defined:
		w.line("%s", wrap("Without any library it runs by the definition that it carries, slower and with memory for the square of the length.", "  "))
	default:
		w.line("%s", wrap("It carries no definition of its op, so it does not run without a library.", "  "))
	}
}
