package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
)

func newOps(c *cli.Common) *cobra.Command {
	ops := &cobra.Command{
		Use:   "ops path|version|install",
		Short: "Say where the op library is and what it knows, or install it",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usage("ops %s is not a command; expected path, version or install%s", args[0], suggest.Hint(args[0], []string{"path", "version", "install"}))
			}
			return cli.Usage("ops needs a command: path, version or install")
		},
		RunE: func(*cobra.Command, []string) error { return nil }, // Args lets nothing through
	}
	where, versions, install :=
		&cobra.Command{
			Use: "path", Short: "Print the path of the op library", Args: cli.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				path, err := customop.FindLibrary(customop.Options{Library: c.Library})
				if err != nil {
					return err
				}
				return c.Show(cmd, placed{path}, func(w *cli.Writer) { w.Line("%s", path) })
			},
		},
		&cobra.Command{
			Use:   "version [MODEL.onnx]",
			Short: "Print the versions of the op library, and which one a model needs",
			Args: func(cmd *cobra.Command, args []string) error {
				if len(args) == 0 {
					return nil
				}
				return cli.Misplaced(cmd, args)
			},
			RunE: func(cmd *cobra.Command, args []string) error { return opsVersion(c, cmd, args) },
		},
		&cobra.Command{
			Use: "install DIR", Short: "Write the op library into a folder, for hosts that load it from there",
			Args: func(_ *cobra.Command, args []string) error {
				if len(args) != 1 {
					return cli.Usage("ops install takes one folder; write rope-rewrite ops install DIR")
				}
				return nil
			},
			RunE: func(cmd *cobra.Command, args []string) error { return opsInstall(c, cmd, args[0]) },
		}
	c.Prints(where, placed{})
	c.Prints(versions, cli.OpsVersions{})
	c.Prints(install, placed{})
	ops.AddCommand(where, versions, install)
	return ops
}

// placed is where a library is, as --json prints it.
type placed struct {
	Path string `json:"path"`
}

// opsInstall writes the library inside this command, or else the one that it finds, into a
// folder.
func opsInstall(c *cli.Common, cmd *cobra.Command, folder string) error {
	if info, err := os.Stat(folder); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a folder", folder)
	}
	var path string
	var err error
	if c.Library == "" && customop.Carries() {
		path, err = customop.Unpack(folder)
	} else {
		path, err = copyLibrary(c, folder)
	}
	if err != nil {
		return err
	}
	return c.Show(cmd, placed{path}, func(w *cli.Writer) { w.Line("%s", path) })
}

// copyLibrary copies the library that is found into a folder.
func copyLibrary(c *cli.Common, folder string) (string, error) {
	from, err := customop.FindLibrary(customop.Options{Library: c.Library})
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

func opsVersion(c *cli.Common, cmd *cobra.Command, args []string) error {
	path, err := customop.FindLibrary(customop.Options{Library: c.Library})
	if err != nil {
		return err
	}
	info, err := customop.InspectLibrary(path)
	if err != nil {
		return err
	}
	v := cli.OpsVersions{LibraryInfo: info, Writes: customop.SpecVersion}
	if len(args) > 0 {
		if err := v.Ask(args[0]); err != nil {
			return err
		}
	}
	if err := c.Show(cmd, v, func(w *cli.Writer) { sayVersions(w, v) }); err != nil {
		return err
	}
	if v.Needs > v.SpecVersion {
		return cli.Exit(cli.ExitFailed, cli.ErrReported)
	}
	return nil
}

func sayVersions(w *cli.Writer, v cli.OpsVersions) {
	w.Line("%s", v.Path)
	w.Line("%s", cli.Wrap(fmt.Sprintf("library %s, op specifications 1 to %d; this command writes 1 to %d, for each model the oldest that suffices", v.Version, v.SpecVersion, v.Writes), "  "))
	switch {
	case v.Model == "":
	case v.Nodes == 0:
		w.Line("%s", cli.Wrap(v.Model+" needs no op library: it has no op of rope-rewrite.", "  "))
	case v.Needs > v.SpecVersion:
		w.Line("%s", cli.Wrap(fmt.Sprintf("%s needs specification %d, which this library does not know: take a newer library, or rewrite the original with the command of this one.", v.Model, v.Needs), "  "))
	default:
		w.Line("%s", cli.Wrap(fmt.Sprintf("%s needs specification %d: this library runs it.", v.Model, v.Needs), "  "))
	}
	switch {
	case v.Nodes == 0:
	case v.Fallback:
		w.Line("%s", cli.Wrap("Without a library it runs on its fallback, more slowly and with memory for the square of the length.", "  "))
	default:
		w.Line("%s", cli.Wrap("It has no fallback, so it does not run without a library.", "  "))
	}
}
