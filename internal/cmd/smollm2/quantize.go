package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// quantized is the variant that is made from another: the Optimum export with
// 4-bit weights, by ONNX Runtime's own quantizer.
const (
	quantized     = "int4"
	quantizedFrom = "optimum"
)

// quantizer says where its parts are.
type quantizer struct {
	fetch   string // script that puts Python packages into site
	site    string // folder of Python packages
	program string // Python program: MODEL.onnx OUT.onnx
}

// usualQuantizer is the one of this repository.
var usualQuantizer = quantizer{
	fetch: "scripts/fetch-quantizer.sh", site: "build/quantizer", program: "testdata/scripts/int4_smollm2.py",
}

// quantize makes the 4-bit variant anew if its source or its program changed.
func (f *fetcher) quantize(ctx context.Context) error {
	if err := f.variant(ctx, quantizedFrom); err != nil {
		return err
	}
	from, folder := filepath.Join(f.out, quantizedFrom), filepath.Join(f.out, quantized)
	stamp, err := fingerprint(map[string]string{
		"source": filepath.Join(from, stampName(graphFile)), "program": f.quantizer.program, "fetch": f.quantizer.fetch,
	})
	if err != nil {
		return err
	}
	if !stamped(folder, graphFile, stamp) {
		if err := f.runQuantizer(ctx, from, folder); err != nil {
			return err
		}
		if err := writeFile(filepath.Join(folder, stampName(graphFile)), []byte(stamp)); err != nil {
			return err
		}
	}
	fmt.Fprintf(f.log, "%s is ready\n", filepath.Join(folder, graphFile))
	return nil
}

func (f *fetcher) runQuantizer(ctx context.Context, from, folder string) error {
	fetch := exec.CommandContext(ctx, "sh", f.quantizer.fetch)
	fetch.Stdout, fetch.Stderr = f.log, f.log
	if err := fetch.Run(); err != nil {
		return fmt.Errorf("fetch ONNX Runtime's quantizer by %s: %w", f.quantizer.fetch, err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, name := range []string{graphFile, dataFile} { // the quantizer appends to a data file that exists
		if err := ignoreAbsent(os.Remove(filepath.Join(folder, name))); err != nil {
			return err
		}
	}
	fmt.Fprintf(f.log, "Quantizing %s to 4 bits ...\n", filepath.Join(from, graphFile))
	command := exec.CommandContext(ctx, "python3", f.quantizer.program, filepath.Join(from, graphFile), filepath.Join(folder, graphFile))
	command.Env = append(os.Environ(), "PYTHONPATH="+f.quantizer.site, "PYTHONDONTWRITEBYTECODE=1")
	command.Stdout, command.Stderr = f.log, f.log
	if err := command.Run(); err != nil {
		return fmt.Errorf("quantize by %s: %w", f.quantizer.program, err)
	}
	if err := os.Chmod(filepath.Join(folder, dataFile), 0o644); err != nil { // Python leaves it to its owner
		return err
	}
	for _, name := range sharedFiles {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(folder, name), b); err != nil {
			return err
		}
	}
	return nil
}
