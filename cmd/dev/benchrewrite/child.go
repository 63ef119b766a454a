package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"time"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// phase is a part of the work, in order.
type phase struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// phases notes when each begins.
type phases struct {
	list  []phase
	start time.Time
}

// begin ends the phase before. A name that comes again goes on where it was,
// so that the proofs of several structures make one phase.
func (p *phases) begin(name string) {
	now := time.Now()
	if len(p.list) > 0 {
		p.list[len(p.list)-1].Seconds += now.Sub(p.start).Seconds()
	}
	p.start = now
	if len(p.list) == 0 || p.list[len(p.list)-1].Name != name {
		p.list = append(p.list, phase{Name: name})
	}
}

// runChild does what rope-rewrite MODEL -o OUT does, and prints what it took.
func runChild(path, out string) error {
	var p phases
	p.begin("opening")
	model, err := onnx.Open(path)
	if err != nil {
		return err
	}
	defer model.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	report, err := rewrite.Rewrite(context.Background(), model, rewrite.Options{
		Worker: []string{self}, AllowKept: true,
		Progress: func(what string) { p.begin(strings.TrimRight(what, "0123456789 of")) },
	})
	if err != nil {
		return err
	}
	p.begin("writing")
	if err := model.Save(out, onnx.SaveOptions{}); err != nil {
		return err
	}
	p.begin("")
	return json.NewEncoder(os.Stdout).Encode(result{Report: report, Phases: p.list[:len(p.list)-1]})
}
