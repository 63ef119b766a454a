package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

func TestMain(m *testing.M) {
	rewrite.ServeIfWorker()
	testscript.Main(m, map[string]func(){"rope-rewrite": main, "stubborn": stubborn})
}

// TestScripts runs testdata/*.txtar, each in a folder of its own that holds
// model.onnx (llama__optimum of the repository's testdata). Their commands:
//
//	rope CODE ARGS…    run rope-rewrite and expect the exit code and at most 80 columns
//	shows TEXT         the last stdout holds the text, line breaks being spaces
//	says TEXT          the last stderr does
//	report             the last stdout is one JSON report with every promised key
//	spoil KIND IN OUT  write a damaged copy of a model, see spoil_test.go
//	cut N IN OUT       copy the first N bytes
func TestScripts(t *testing.T) {
	onnxruntime, library := testruntime.Paths(t)
	models, err := filepath.Abs("../../testdata/models")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv(customop.RuntimeVariable, onnxruntime)
			env.Setenv(customop.LibraryVariable, library)
			env.Setenv("MODELS", models)
			env.Setenv("ESC", "\x1b")
			env.Setenv("LONG", strings.Repeat("long", 500))
			model, err := os.ReadFile(filepath.Join(models, "llama__optimum", "model.onnx"))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(env.WorkDir, "model.onnx"), model, 0o666)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"rope": expect, "shows": holds("stdout"), "says": holds("stderr"), "report": report, "spoil": spoil, "cut": cut,
		},
	})
}

func expect(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec("rope-rewrite", args[1:]...)
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	stdout, stderr := ts.ReadFile("stdout"), ts.ReadFile("stderr")
	if code != want {
		ts.Fatalf("exit code %d, want %d\n%s%s", code, want, stdout, stderr)
	}
	if raw := stdout + stderr; quote(raw) != raw {
		ts.Fatalf("a terminal would act on what is shown: %q", raw)
	}
	if strings.Contains(strings.Join(args, " "), "--json") {
		stdout = "" // for programs
	}
	for line := range strings.Lines(stdout + stderr) {
		line = strings.TrimRight(line, "\n")
		// A path that is longer than the line cannot be broken.
		if len([]rune(line)) > 80 && strings.Contains(strings.TrimSpace(line), " ") {
			ts.Fatalf("a line has %d columns: %s", len([]rune(line)), line)
		}
		for _, never := range []string{"panic", "goroutine", "%!", "<nil>", "stat "} {
			if strings.Contains(line, never) {
				ts.Fatalf("%q on the screen: %s", never, line)
			}
		}
	}
}

func holds(stream string) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		text := strings.Join(strings.Fields(ts.ReadFile(stream)), " ")
		if strings.Contains(text, args[0]) == neg {
			ts.Fatalf("%s, expected to hold it: %t\n%q", stream, !neg, args[0])
		}
	}
}

func cut(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(ts.ReadFile(args[1])[:n]), 0o666))
}
