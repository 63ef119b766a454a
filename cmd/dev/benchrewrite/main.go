// Command benchrewrite measures what a rewrite costs: its time beside cp of
// the same file, its phases, and its memory beyond the mapped file.
//
//	go run ./cmd/dev/benchrewrite build/smollm2/optimum/model.inline.onnx [MODEL...]
//
// With -with it runs the command itself, once for each set of flags, and says
// what it took and what it wrote beside linked weights:
//
//	go run ./cmd/dev/benchrewrite -with "yarn --scaling yarn:factor=2" build/sizes/llama-1b/model.onnx
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rope-rewrite/rope-rewrite/internal/buildfiles"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// The bounds that docs/results/speed.md promises.
const (
	cpTimes    = 1.5
	cpSeconds  = 3.0
	memoryOver = 150 << 20
	proofBound = 5.0
)

func main() {
	rewrite.ServeIfWorker()
	rounds := flag.Int("rounds", 3, "runs of each kind; the fastest counts, all are printed")
	child := flag.String("child", "", "rewrite the model to this file and print JSON (the benchmark starts this)")
	command := flag.String("command", "build/rope-rewrite", "the command that -with runs")
	var with []variant
	flag.Func("with", "`NAME FLAGS`: run the command with FLAGS, to the folder NAME beside the model; may be repeated", func(text string) error {
		words := strings.Fields(text)
		if len(words) == 0 {
			return errors.New("a name is missing, as in -with \"yarn --scaling yarn:factor=2\"")
		}
		with = append(with, variant{name: words[0], flags: words[1:]})
		return nil
	})
	flag.Parse()
	var err error
	switch {
	case flag.NArg() == 0:
		err = fmt.Errorf("name the models to rewrite; make bench-rewrite does")
	case *child != "":
		debug.SetGCPercent(50) // as cmd/rope-rewrite does
		err = runChild(flag.Arg(0), *child)
	default:
		for _, model := range flag.Args() {
			if with != nil {
				err = benchCommand(*command, model, *rounds, with)
			} else {
				err = bench(model, *rounds)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", model, err)
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchrewrite:", err)
		os.Exit(1)
	}
}

// result is what one run took.
type result struct {
	Report  *rewrite.Report `json:"report"`
	Phases  []phase         `json:"phases"`
	Seconds float64         `json:"-"` // of the whole process
	CPU     float64         `json:"-"` // of processors, the worker's included
	Memory  memory          `json:"-"` // the worker's included
}

// bench prints a model's table.
func bench(model string, rounds int) error {
	if err := buildfiles.SetLibraries(); err != nil {
		return err
	}
	info, err := os.Stat(model)
	if err != nil {
		return err
	}
	out := filepath.Join(filepath.Dir(model), ".bench-rewrite.onnx")
	defer os.Remove(out)
	fmt.Printf("%s, %d MB\n", model, info.Size()/1e6)
	for _, cold := range []bool{true, false} {
		name := map[bool]string{true: "cold (file not in memory)", false: "warm"}[cold]
		var copies, synced []float64
		var runs []result
		for range rounds {
			t, err := copyTime(model, out, cold, false)
			if err != nil {
				return err
			}
			copies = append(copies, t)
			if t, err = copyTime(model, out, cold, true); err != nil {
				return err
			}
			synced = append(synced, t)
			r, err := rewriteOnce(model, out, cold)
			if err != nil {
				return err
			}
			runs = append(runs, r)
		}
		printRuns(name, copies, synced, runs)
	}
	return nil
}

func copyTime(model, out string, cold, sync bool) (float64, error) {
	if err := prepare(model, out, cold); err != nil {
		return 0, err
	}
	start := time.Now()
	if b, err := exec.Command("cp", model, out).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("cp: %s", b)
	}
	if sync {
		file, err := os.Open(out)
		if err != nil {
			return 0, err
		}
		defer file.Close()
		if err := file.Sync(); err != nil {
			return 0, err
		}
	}
	return time.Since(start).Seconds(), nil
}

// prepare removes the output, lets the disk come to rest, and for a cold run
// drops the model from memory.
func prepare(model, out string, cold bool) error {
	if err := os.Remove(out); err != nil && !os.IsNotExist(err) {
		return err
	}
	if b, err := exec.Command("sync").CombinedOutput(); err != nil {
		return fmt.Errorf("sync: %s", b)
	}
	if cold {
		return dropFromMemory(model)
	}
	file, err := os.Open(model)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(io.Discard, file)
	return err
}

// rewriteOnce runs a process of its own, so that its memory is its own.
func rewriteOnce(model, out string, cold bool) (r result, err error) {
	if err := prepare(model, out, cold); err != nil {
		return r, err
	}
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	text, r, err := watched(exec.Command(self, "-child", out, model), model)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

// watched runs a command and returns what it printed and what it took.
func watched(command *exec.Cmd, model string) (text []byte, r result, err error) {
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, r, err
	}
	start := time.Now()
	if err := command.Start(); err != nil {
		return nil, r, err
	}
	watch := startWatch(command.Process.Pid, model)
	text, readErr := io.ReadAll(output)
	err = command.Wait()
	r.Seconds = time.Since(start).Seconds()
	r.Memory = watch.stop()
	r.CPU = (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds()
	return text, r, errors.Join(readErr, err)
}
