package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
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

func nodesCommand() *cobra.Command {
	var child string
	command := &cobra.Command{
		Use:   "nodes KIND=NUMBER...",
		Short: "Measure rewrites of graphs with far more nodes or heads than exporters write",
		Long: `Each line gives processor time and the largest resident memory: of ONNX Runtime
loading the model, of the rewriter's own process, and of its worker.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if child != "" {
				return runChild(child, args[0])
			}
			return measureNodes(args)
		},
	}
	command.Flags().StringVar(&child, "child", "", "load or rewrite one model and print JSON (the command starts this)")
	return command
}

// usage is what one process took.
type usage struct {
	Seconds float64 // of processors
	Bytes   int64   // resident at most
}

func (u usage) String() string { return fmt.Sprintf("%.1f s, %d MB", u.Seconds, u.Bytes>>20) }

// outcome is what a child process says.
type outcome struct {
	Nodes, Sites, Rewritten int
	Reason                  string // of the first layer that is unchanged, or the error
	Own, Worker             usage
}

func measureNodes(names []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "nodes")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	fmt.Println("| graph | nodes | verified | ONNX Runtime loads it in | our own process | its worker |\n|---|---|---|---|---|---|")
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
		var load, rewritten outcome
		for action, to := range map[string]*outcome{"load": &load, "rewrite": &rewritten} {
			command := exec.Command(self, "nodes", "--child", action, path)
			command.Stderr = os.Stderr
			output, err := command.Output()
			if err != nil {
				return fmt.Errorf("%s of %s: %w", action, name, err)
			}
			if err := json.Unmarshal(output, to); err != nil {
				return err
			}
		}
		verified := fmt.Sprintf("%d of %d", rewritten.Rewritten, rewritten.Sites)
		if rewritten.Reason != "" {
			verified += " (" + rewritten.Reason + ")"
		}
		loads := load.Own.String()
		if load.Reason != "" {
			loads = load.Reason
		}
		fmt.Printf("| %s | %d | %s | %s | %v | %v |\n", name, rewritten.Nodes, verified, loads, rewritten.Own, rewritten.Worker)
	}
	return nil
}

func runChild(action, path string) error {
	var r outcome
	debug.SetGCPercent(50) // as cmd/rope-rewrite does
	var err error
	if action == "load" {
		err = load(path)
	} else {
		err = r.rewrite(path)
	}
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

func (r *outcome) rewrite(path string) error {
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
	report, err := rewrite.Rewrite(context.Background(), m, rewrite.Options{Evaluation: rewrite.Evaluation{Worker: []string{self}}})
	r.Sites, r.Rewritten = len(report.Sites), report.Rewritten()
	for _, s := range report.Sites {
		if s.Status != rewrite.Rewritten && r.Reason == "" {
			r.Reason = s.Reason
		}
	}
	if err != nil {
		return err
	}
	return m.Save(filepath.Join(filepath.Dir(path), "out.onnx"), onnx.SaveOptions{Force: true})
}
