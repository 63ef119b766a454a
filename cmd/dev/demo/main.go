package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
)

func main() {
	engine.ServeIfWorker()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	build := os.Getenv("BUILD")
	if build == "" {
		build = "build"
	}
	d := demo{
		out:     os.Stdout,
		command: filepath.Join(build, "rope-rewrite"),
		folder:  filepath.Join(build, "demo"),
		models:  filepath.Join("testdata", "models"),
		names:   []string{"llama__optimum", "llama__dynamo18"},
		goldens: filepath.Join("testdata", "goldens", "llama.npz"),
		libraries: engine.Config{
			Runtime: unlessSet(customop.RuntimeVariable, filepath.Join(build, "onnxruntime", "libonnxruntime.so")),
			Library: unlessSet(customop.LibraryVariable, filepath.Join(build, "librope_ops.so")),
		},
	}
	if err := d.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1)
	}
}

// unlessSet leaves a library that the environment names to it.
func unlessSet(variable, path string) string {
	if os.Getenv(variable) != "" {
		return ""
	}
	return path
}

// demo says where everything is.
type demo struct {
	out       io.Writer
	command   string // the rope-rewrite that is shown
	folder    string // patched models are left here
	models    string
	names     []string // of the models, all of one architecture and its weights
	goldens   string   // of that architecture
	libraries engine.Config

	checked, off int
}

// errOff ends a demo in which something is not as it must be.
var errOff = errors.New("a difference is above the bound: this build is wrong")

// bound is the largest difference of two logits that is accepted; logits of
// these models lie between about −7 and 7.
const bound = 1e-4

func (d *demo) run(ctx context.Context) error {
	if err := os.MkdirAll(d.folder, 0o777); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	eng, err := engine.NewWorker(d.libraries, self)
	if err != nil {
		return err
	}
	defer eng.Close()

	fmt.Fprintf(d.out, "%-7s %-31s %-16s %-10s  ≤ %.0e\n", "method", "run", "compared with", "difference", bound)
	for _, name := range d.names {
		if err := d.model(ctx, eng, self, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if d.off > 0 {
		return fmt.Errorf("%d of %d: %w", d.off, d.checked, errOff)
	}
	fmt.Fprintf(d.out, closing, d.checked, shown(d.folder), shown(d.command), filepath.ToSlash(d.models))
	return nil
}

const closing = `
Difference is the largest of two logits. All %d are within the bound.

What was done: two exports of one small Llama, as Optimum and torch.onnx wrote
them, were rewritten three times each. Every attention layer was first verified
equal to the fused op. Then it was left unchanged (no method), or changed by
YaRN or STRING, and the outputs of the patched models were compared. They are
in %s.

To type next:
  %[3]s inspect %[4]s/llama__optimum/model.onnx
  %[3]s methods
  %[3]s eval FOLDER --method none --method "AXIS SPEC"
  make smollm2        the same on a real language model (downloads 110 MB)
docs/start.md goes on from here. docs/using.md says how a patched model is
loaded from Go, Python and C.
`

// shown is a path as the reader would type it here.
func shown(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if short, err := filepath.Rel(here, path); err == nil && !strings.HasPrefix(short, "..") {
		return short
	}
	return path
}

// row prints one comparison.
func (d *demo) row(method, run, with string, difference float64) {
	d.checked++
	verdict := "ok"
	if !(difference <= bound) { // NaN is off too
		d.off++
		verdict = "OFF"
	}
	fmt.Fprintf(d.out, "%-7s %-31s %-16s %-10.1e  %s\n", method, run, with, difference, verdict)
}
