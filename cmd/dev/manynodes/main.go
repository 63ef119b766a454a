// Command manynodes measures what a rewrite takes of graphs that have far more
// nodes or heads than exporters write, and what ONNX Runtime takes to load them.
//
//	go run ./cmd/dev/manynodes [-profile FOLDER] plain=100000 softmaxes=20000 angles=50000 masks=20000 layers=1000 heads=4096
//
// Each line gives processor time and the largest resident memory: of ONNX
// Runtime loading the model, of the rewriter's own process, and of its worker.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/largemodel"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// two is a small decoder of two layers with something added.
func two(crowd largemodel.Crowd) largemodel.Llama {
	return largemodel.Llama{Layers: 2, Heads: 4, KVHeads: 2, HeadSize: 16, Intermediate: 64, Vocabulary: 256, Theta: 10000, Crowd: crowd}
}

// graphs are the kinds of graph, each of n things.
var graphs = map[string]func(n int64) largemodel.Llama{
	"plain":         func(n int64) largemodel.Llama { return two(largemodel.Crowd{Plain: n}) },
	"softmaxes":     func(n int64) largemodel.Llama { return two(largemodel.Crowd{Softmaxes: n}) },
	"probabilities": func(n int64) largemodel.Llama { return two(largemodel.Crowd{Probabilities: n}) },
	"angles":        func(n int64) largemodel.Llama { return two(largemodel.Crowd{Angles: n}) },
	"masks":         func(n int64) largemodel.Llama { return two(largemodel.Crowd{MaskProducts: n}) },
	"layers": func(n int64) largemodel.Llama {
		return largemodel.Llama{Layers: n, Heads: 4, KVHeads: 2, HeadSize: 16, Intermediate: 64, Vocabulary: 256, Theta: 10000}
	},
	"heads": func(n int64) largemodel.Llama {
		return largemodel.Llama{Layers: 1, Heads: n, KVHeads: n, HeadSize: 4, Intermediate: 64, Vocabulary: 256, Theta: 10000}
	},
}

func main() {
	rewrite.ServeIfWorker()
	child := flag.String("child", "", "do this with one model and print JSON (the command starts this)")
	profile := flag.String("profile", "", "folder for profiles of processor time")
	flag.Parse()
	var err error
	if *child != "" {
		err = runChild(*child, flag.Arg(0), *profile)
	} else {
		err = measure(flag.Args(), *profile)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manynodes:", err)
		os.Exit(1)
	}
}

// usage is what one process took.
type usage struct {
	Seconds float64 // of processors
	Bytes   int64   // resident at most
}

func (u usage) String() string { return fmt.Sprintf("%.1f s, %d MB", u.Seconds, u.Bytes>>20) }

// result is what a child process says.
type result struct {
	Nodes, Sites, Rewritten int
	Reason                  string // of the first site that is kept, or the error
	Own, Worker             usage
}

func measure(names []string, profile string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "manynodes")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	fmt.Println("| graph | nodes | proven | ONNX Runtime loads it in | our own process | its worker |\n|---|---|---|---|---|---|")
	for _, name := range names {
		kind, count, _ := strings.Cut(name, "=")
		n, err := strconv.ParseInt(count, 10, 64)
		if graphs[kind] == nil || err != nil {
			return fmt.Errorf("%q: KIND=NUMBER was expected, with one of %v as the kind", name, slices.Sorted(maps.Keys(graphs)))
		}
		path, _, err := graphs[kind](n).Write(folder, true)
		if err != nil {
			return err
		}
		var load, rewritten result
		for action, to := range map[string]*result{"load": &load, "rewrite": &rewritten} {
			command := exec.Command(self, "-child", action, "-profile", profile, path)
			command.Stderr = os.Stderr
			output, err := command.Output()
			if err != nil {
				return fmt.Errorf("%s of %s: %w", action, name, err)
			}
			if err := json.Unmarshal(output, to); err != nil {
				return err
			}
		}
		proven := fmt.Sprintf("%d of %d", rewritten.Rewritten, rewritten.Sites)
		if rewritten.Reason != "" {
			proven += " (" + rewritten.Reason + ")"
		}
		loads := load.Own.String()
		if load.Reason != "" {
			loads = load.Reason
		}
		fmt.Printf("| %s | %d | %s | %s | %v | %v |\n", name, rewritten.Nodes, proven, loads, rewritten.Own, rewritten.Worker)
	}
	return nil
}

func runChild(action, path, profile string) error {
	var r result
	debug.SetGCPercent(50) // as cmd/rope-rewrite does
	if profile != "" {
		file, err := os.Create(filepath.Join(profile, action+".pprof"))
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
	}
	var err error
	if action == "load" {
		err = load(path)
	} else {
		err = r.rewrite(path)
	}
	pprof.StopCPUProfile()
	if err != nil {
		r.Reason = err.Error()
	}
	for who, u := range map[int]*usage{unix.RUSAGE_SELF: &r.Own, unix.RUSAGE_CHILDREN: &r.Worker} {
		var rusage unix.Rusage
		if err := unix.Getrusage(who, &rusage); err != nil {
			return err
		}
		u.Seconds = float64(rusage.Utime.Nano()+rusage.Stime.Nano()) / 1e9
		u.Bytes = rusage.Maxrss
		if runtime.GOOS != "darwin" {
			u.Bytes <<= 10
		}
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

func load(path string) error {
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		return err
	}
	_, err = eng.Load(context.Background(), engine.Model{Path: path, Inputs: []string{"input_ids"}, Outputs: []string{"logits"}, Large: true})
	return err
}

func (r *result) rewrite(path string) error {
	m, err := onnx.Open(path)
	if err != nil {
		return err
	}
	defer m.Close()
	r.Nodes = len(m.Graph.Nodes)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	report, err := rewrite.Rewrite(context.Background(), m, rewrite.Options{Worker: []string{self}})
	r.Sites, r.Rewritten = len(report.Sites), report.Rewritten()
	for _, s := range report.Sites {
		if s.Status == rewrite.Kept && r.Reason == "" {
			r.Reason = s.Reason
		}
	}
	if err != nil {
		return err
	}
	return m.Save(filepath.Join(filepath.Dir(path), "out.onnx"), onnx.SaveOptions{Force: true})
}
