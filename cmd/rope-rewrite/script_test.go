package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

func TestMain(m *testing.M) {
	rewrite.ServeIfWorker()
	testscript.Main(m, map[string]func(){"rope-rewrite": main, "stubborn": stubborn})
}

// update writes what the commands say into the transcripts of testdata/*.txtar, and new bodies into
// the table of known fallbacks.
var update = flag.Bool("update", false, "write what is said into testdata/mistakes.txtar, and new bodies into the table of known fallbacks")

// TestScripts runs testdata/*.txtar, each in a folder of its own that holds
// model.onnx (llama__optimum of the repository's testdata). Their commands:
//
//	rope CODE ARGS…    run rope-rewrite and expect the exit code and at most 80 columns
//	shows TEXT         the last stdout holds the text, line breaks being spaces
//	says TEXT          the last stderr does
//	report             the last stdout is a report whose fields fit together
//	spoil KIND IN OUT  write a damaged copy of a model, see spoil_test.go
//	cut N IN OUT       copy the first N bytes
//	[!every]           whether make test-every runs the test
//	transcript FILE    run the commands of a transcript, see below, and make the
//	                   transcript of that the last stdout
//
// What any of them prints with --json must be valid by the schema of its command.
func TestScripts(t *testing.T) {
	onnxruntime, library := testruntime.Paths(t)
	models, err := filepath.Abs("../../testdata/models")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: *update,
		Condition: func(name string) (bool, error) {
			if name != "every" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return testsample.EveryCase(), nil
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv(customop.RuntimeVariable, onnxruntime)
			env.Setenv(customop.LibraryVariable, library)
			env.Setenv("MODELS", models)
			env.Setenv("DOUBLES", filepath.Join(models, "..", "doubles"))
			for _, name := range []string{"GOGC", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"} { // see the Makefile
				if value := os.Getenv(name); value != "" {
					env.Setenv(name, value)
				}
			}
			env.Setenv("ESC", "\x1b")
			env.Setenv("LONG", strings.Repeat("long", 500))
			model, err := os.ReadFile(filepath.Join(models, "llama__optimum", "model.onnx"))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(env.WorkDir, "model.onnx"), model, 0o666)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"rope": expect, "shows": holds("stdout"), "says": holds("stderr"), "report": report, "spoil": spoil, "cut": cut, "forget": forget, "transcript": transcript,
		},
	})
}

func expect(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if code, said := runCommand(ts, args[1:]); code != want {
		ts.Fatalf("exit code %d, want %d\n%s", code, want, said)
	}
}

// runCommand runs the command, and returns its exit code and all that it says, of
// which every line must fit the screen.
func runCommand(ts *testscript.TestScript, args []string) (code int, said string) {
	err := ts.Exec("rope-rewrite", args...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	stdout, stderr := ts.ReadFile("stdout"), ts.ReadFile("stderr")
	said = stdout + stderr
	if cli.Quote(said) != said {
		ts.Fatalf("a terminal would act on what is shown: %q", said)
	}
	if slices.Contains(args, "--json") {
		valid(ts, args, stdout)
		stdout = "" // for programs
	}
	if at := repeated.FindStringIndex(stdout + stderr); at != nil {
		ts.Fatalf("a long name is repeated: %s", stdout+stderr)
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
	return code, said
}

// transcript runs the lines of a file that begin with "$ rope-rewrite ", and puts
// behind each what it says and its exit code, in the place of what stands there.
// With cmp and the flag -update the file becomes what is said now.
func transcript(ts *testscript.TestScript, neg bool, args []string) {
	var out strings.Builder
	skip := false // what a command said before
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		command, found := strings.CutPrefix(line, "$ rope-rewrite")
		switch {
		case found:
			code, said := runCommand(ts, words(command))
			fmt.Fprintf(&out, "%s%s[%d]\n", line, said, code)
			skip = true
		case strings.HasPrefix(line, "#") || line == "\n" && strings.HasSuffix(out.String(), "]\n"):
			skip = false
			out.WriteString(line)
		case !skip:
			out.WriteString(line)
		}
	}
	_, err := io.WriteString(ts.Stdout(), out.String())
	ts.Check(err)
}

// words splits a command line at spaces outside single quotes.
func words(line string) (list []string) {
	word, quoted, begun := "", false, false
	for _, r := range strings.TrimSpace(line) + " " {
		switch {
		case r == '\'':
			quoted, begun = !quoted, true
		case r == ' ' && !quoted:
			if begun {
				list = append(list, word)
			}
			word, begun = "", false
		default:
			word, begun = word+string(r), true
		}
	}
	return list
}

func holds(stream string) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		text := strings.Join(strings.Fields(ts.ReadFile(stream)), " ")
		if strings.Contains(text, args[0]) == neg {
			ts.Fatalf("%s, expected to hold it: %t\n%q", stream, !neg, args[0])
		}
	}
}

// forget FILE... takes the record of the rewrite out of models.
func forget(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		path := ts.MkAbs(name)
		m, err := onnx.Open(path)
		ts.Check(err)
		m.RemoveMetadata(provenance.Key)
		data, err := m.Marshal()
		ts.Check(err)
		ts.Check(m.Close())
		ts.Check(os.WriteFile(path, data, 0o666))
	}
}

func cut(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(ts.ReadFile(args[1])[:n]), 0o666))
}
