package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
)

// An interrupt ends the command with a sentence and leaves no file.
func TestInterrupt(t *testing.T) {
	testruntime.Require(t)
	model, err := os.ReadFile("../../testdata/models/llama__optimum/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {"inspect"}, {"--json"}} {
		dir := t.TempDir()
		path := filepath.Join(dir, "model.onnx")
		if err := os.WriteFile(path, model, 0o666); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		var stdout, stderr bytes.Buffer
		if code := run(ctx, append(args, path), &stdout, &stderr); code != cli.ExitInterrupted {
			t.Errorf("%v: exit code %d", args, code)
		}
		if stderr.String() != "rope-rewrite: interrupted; no model was written\n" {
			t.Errorf("%v: said %q", args, stderr.String())
		}
		var report cli.FailureReport
		if !slices.Contains(args, "--json") {
			if stdout.Len() > 0 {
				t.Errorf("%v: printed %q", args, stdout.String())
			}
		} else if err := json.Unmarshal(stdout.Bytes(), &report); err != nil || report.Error != (cli.Failure{Message: "interrupted; no model was written", Exit: cli.ExitInterrupted}) {
			t.Errorf("%v: printed %q", args, stdout.String())
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
			t.Errorf("%v: left %v, %v", args, files, err)
		}
	}
}

// stubborn is a command that ignores that its context is cancelled.
func stubborn() {
	os.Exit(cli.Interruptible(func(context.Context) int {
		fmt.Println("begun")
		select {}
	}))
}
