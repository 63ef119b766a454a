package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
)

// derivation says how a variant is made from another one.
type derivation struct {
	from    string
	program string // Python program: MODEL.onnx OUT.onnx
}

// derivations are the variants that are not in the source folder: 4-bit weights
// by ONNX Runtime's own quantizer, and float16.
var derivations = map[string]derivation{
	"int4": {"optimum", "testdata/scripts/int4_smollm2.py"},
	"fp16": {"dynamo18", "testdata/scripts/fp16_smollm2.py"},
}

// referenceFile is a derived variant in float64, with its own weights: what
// errors are measured against.
const (
	referenceFile    = "model.float64.onnx"
	referenceProgram = "testdata/scripts/double_smollm2.py"
)

// python runs programs with pinned packages.
type python struct {
	fetch string // script that puts the packages of a name into a folder of that name
	build string // where those folders are
}

// usualPython is the one of this repository.
var usualPython = python{fetch: "scripts/fetch-python.sh", build: "build"}

// run runs a program with the named packages, which are fetched once.
func (p python) run(ctx context.Context, log io.Writer, packages, program string, args ...string) error {
	fetch := exec.CommandContext(ctx, "sh", p.fetch, packages)
	fetch.Stdout, fetch.Stderr = log, log
	if err := fetch.Run(); err != nil {
		return fmt.Errorf("fetch Python packages by %s %s: %w", p.fetch, packages, err)
	}
	command := exec.CommandContext(ctx, "python3", append([]string{program}, args...)...)
	command.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(p.build, packages), "PYTHONDONTWRITEBYTECODE=1")
	command.Stdout, command.Stderr = log, log
	if err := command.Run(); err != nil {
		return fmt.Errorf("make %s by %s: %w", args[len(args)-1], program, err)
	}
	return nil
}

// derive makes a derived variant and its reference anew if its source or a
// program changed.
func (f *fetcher) derive(ctx context.Context, name string) error {
	d := derivations[name]
	if err := f.variant(ctx, d.from); err != nil {
		return err
	}
	from, folder := filepath.Join(f.out, d.from), filepath.Join(f.out, name)
	stamp, err := fingerprint(map[string]string{
		"source": filepath.Join(from, stampName(graphFile)), "program": d.program, "reference": referenceProgram, "fetch": f.python.fetch,
	})
	if err != nil {
		return err
	}
	if !stamped(folder, graphFile, stamp) {
		if err := f.runDerivation(ctx, d, from, folder); err != nil {
			return err
		}
		if err := configfile.Write(filepath.Join(folder, stampName(graphFile)), []byte(stamp), 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(f.log, "%s is ready\n", filepath.Join(folder, graphFile))
	return nil
}

func (f *fetcher) runDerivation(ctx context.Context, d derivation, from, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := f.runProgram(ctx, d.program, filepath.Join(from, graphFile), filepath.Join(folder, graphFile)); err != nil {
		return err
	}
	if err := f.runProgram(ctx, referenceProgram, filepath.Join(folder, graphFile), filepath.Join(folder, referenceFile)); err != nil {
		return err
	}
	for _, name := range sharedFiles {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := configfile.Write(filepath.Join(folder, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// runProgram makes one model of another, its data beside it.
func (f *fetcher) runProgram(ctx context.Context, program, model, out string) error {
	data := out + ".data"
	for _, path := range []string{out, data} { // Python's onnx appends to a data file that exists
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	fmt.Fprintf(f.log, "Making %s ...\n", out)
	if err := f.python.run(ctx, f.log, "quantizer", program, model, out); err != nil {
		return err
	}
	return os.Chmod(data, 0o644) // Python leaves it to its owner
}
