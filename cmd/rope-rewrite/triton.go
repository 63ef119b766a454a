package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/triton"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// tritonCommand is rope-rewrite triton.
type tritonCommand struct {
	*cli.Common
	repository, name, at string
	weights              cli.Weights
}

// tritonReport is what it prints as JSON.
type tritonReport struct {
	Model   string            `json:"model"`
	Folder  string            `json:"folder"`
	Files   []string          `json:"files"`
	Weights []onnx.PlacedFile `json:"weights"`
}

func newTriton(c *cli.Common) *cobra.Command {
	t := &tritonCommand{Common: c}
	cmd := &cobra.Command{
		Use:   "triton MODEL -o REPOSITORY",
		Short: "Put a model into a repository of Triton Inference Server",
		Long: `Puts a model, or the one of a folder, into a model repository of Triton Inference
Server: REPOSITORY/NAME/config.pbtxt with every input and output, the model as
version 1, and the op library where the model has the op.`,
		Args: cli.OneModel,
		RunE: func(cmd *cobra.Command, args []string) error { return t.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVarP(&t.repository, "output", "o", "", "the model `REPOSITORY`; it is made where it is missing")
	f.StringVar(&t.name, "name", "", "`NAME` of the model in the repository (default: that of its folder)")
	f.StringVar(&t.at, "at", "/models", "`PATH` at which the server sees the repository")
	t.weights.Flag(f)
	return cmd
}

func (t *tritonCommand) run(cmd *cobra.Command, model string) error {
	if t.repository == "" {
		return cli.Usage("where to? Name a model repository with -o REPOSITORY")
	}
	file, err := modelIn(model)
	if err != nil {
		return err
	}
	if t.name == "" {
		if t.name, err = folderName(file); err != nil {
			return err
		}
	}
	if t.name != filepath.Base(t.name) || strings.HasPrefix(t.name, ".") {
		return cli.Usage("--name %q: a name was expected, without folders", t.name)
	}
	m, err := onnx.Open(file)
	if err != nil {
		return err
	}
	defer m.Close()
	report, err := t.write(m, file)
	if err != nil {
		return err
	}
	return t.Show(cmd, report, func(w *cli.Writer) {
		for _, name := range report.Files {
			w.Line("%s", name)
		}
		cli.Placed(w, report.Weights)
		w.Line("%s", cli.Wrap(fmt.Sprintf("Start the server with --model-repository=%s where it sees %s.", t.at, t.repository), "  "))
	})
}

// write makes the model's folder in the repository. The configuration comes last: a server that
// watches the repository takes the model when it is there.
func (t *tritonCommand) write(m *onnx.Model, file string) (*tritonReport, error) {
	folder := filepath.Join(t.repository, t.name)
	if _, err := os.Stat(folder); err == nil {
		return nil, fmt.Errorf("%s exists; remove it, or give another --name", folder)
	}
	v := &cli.OpsVersions{}
	if err := v.Ask(file); err != nil {
		return nil, err
	}
	var library []byte
	at := ""
	if v.Nodes > 0 {
		from, err := customop.FindLibrary(customop.Options{Library: t.Library})
		if err != nil {
			return nil, err
		}
		if library, err = configfile.Read(from, configfile.Library); err != nil {
			return nil, err
		}
		at = path.Join(t.at, t.name, customop.LibraryFile())
	}
	config, err := triton.Config(t.name, m, at)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	r := &tritonReport{Model: file, Folder: folder, Weights: []onnx.PlacedFile{}}
	if err := os.MkdirAll(filepath.Join(folder, "1"), 0o777); err != nil {
		return nil, err
	}
	model := filepath.Join(folder, "1", "model.onnx")
	if err := m.Save(model, onnx.SaveOptions{Link: t.weights.Link, Placed: func(file onnx.PlacedFile) { r.Weights = append(r.Weights, file) }}); err != nil {
		return nil, err
	}
	r.Files = append(r.Files, model)
	if library != nil {
		path := filepath.Join(folder, customop.LibraryFile())
		if err := customop.PlaceLibrary(path, library); err != nil {
			return nil, err
		}
		r.Files = append(r.Files, path)
	}
	text := filepath.Join(folder, "config.pbtxt")
	r.Files = append(r.Files, text)
	return r, os.WriteFile(text, []byte(config), 0o666)
}

// modelIn is the model itself, or the one that a folder holds.
func modelIn(name string) (string, error) {
	if !cli.IsFolder(name) {
		return name, nil
	}
	models, err := filepath.Glob(filepath.Join(name, "*.onnx"))
	if err != nil {
		return "", err
	}
	switch len(models) {
	case 0:
		return "", fmt.Errorf("%s has no .onnx file", name)
	case 1:
		return models[0], nil
	}
	whole := filepath.Join(name, "model.onnx")
	if _, err := os.Stat(whole); errors.Is(err, fs.ErrNotExist) {
		return "", cli.Usage("%s has %d models; name the one to serve", name, len(models))
	}
	return whole, nil
}

// folderName is the name of the folder that a model stands in.
func folderName(file string) (string, error) {
	full, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	return filepath.Base(filepath.Dir(full)), nil
}
