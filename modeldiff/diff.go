package modeldiff

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/rope-rewrite/rope-rewrite/audit"
	"github.com/rope-rewrite/rope-rewrite/difference"
	"github.com/rope-rewrite/rope-rewrite/internal/ranges"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// Report says how two models differ. Its lists hold only what differs.
type Report struct {
	A string `json:"a"`
	B string `json:"b"`

	Same     bool     `json:"same"`     // nothing of what follows differs
	Bytes    [2]int64 `json:"bytes"`    // of the model files, without external data
	External [2]int64 `json:"external"` // bytes of constants in external data

	// Graph says that the graphs are the same but for the contents of weights: nodes with
	// their attributes and names, the order of everything, where external data lies.
	Graph bool `json:"same_graph"`

	// Differences are all but those of Graph. Expected is A's, Found B's, Where the name of what differs.
	Differences []Difference `json:"differences"`

	SameWeights int      `json:"same_weights"` // constants that are the same under one name, those of graphs inside nodes too
	Read        int64    `json:"bytes_read"`   // of weights, to compare them
	Notes       []string `json:"notes"`        // what could not be compared, and why
}

// Difference is one difference of two models; What is one of the kinds below, or says what is other about a node.
type Difference = difference.Difference

// The kinds of differences.
const (
	Method      = "method"    // what rope-rewrite was asked for, with every parameter
	Attention   = "attention" // what attention layers compute
	Node        = "nodes"     // how many of an op there are
	Input       = "input"     // of the graph
	Output      = "output"    // of the graph
	OperatorSet = "operator set"
	Metadata    = "metadata"
	Weight      = "weight"  // other contents
	Renamed     = "renamed" // a weight, under another name
	OnlyA       = "only in A"
	OnlyB       = "only in B"
)

// Of lists the differences of one kind.
func (r *Report) Of(kind string) (list []Difference) {
	for _, d := range r.Differences {
		if d.What == kind {
			list = append(list, d)
		}
	}
	return list
}

func (r *Report) add(kind string, list []Difference) {
	for _, d := range list {
		d.What = kind
		r.Differences = append(r.Differences, d)
	}
}

// Options says how models are compared. The zero value evaluates them in this process.
type Options struct {
	Rewrite rewrite.Options // the libraries and the worker that evaluate; its Progress is told what is done
}

// Run compares two model files. The error says why one could not be read.
func Run(ctx context.Context, a, b string, opts Options) (*Report, error) {
	d := &Report{A: a, B: b, Differences: []Difference{}, Notes: []string{}}
	var models [2]*onnx.Model
	for i, path := range []string{a, b} {
		info, err := os.Stat(path)
		if err != nil {
			return d, err
		}
		d.Bytes[i] = info.Size()
		if models[i], err = onnx.Open(path); err != nil {
			return d, err
		}
		defer models[i].Close()
		d.External[i] = external(models[i])
	}
	d.Graph = models[0].Digest() == models[1].Digest()
	before, after := models[0], models[1]
	d.add(Method, changes(d.methods(before), d.methods(after)))
	d.add(Input, changes(values(before.Graph.Inputs), values(after.Graph.Inputs)))
	d.add(Output, changes(values(before.Graph.Outputs), values(after.Graph.Outputs)))
	d.add(OperatorSet, changes(opsets(before), opsets(after)))
	d.add(Metadata, changes(metadata(before), metadata(after)))
	d.add(Node, changes(countNodes(before), countNodes(after)))
	digest := newDigester(func(read int64) error {
		if opts.Rewrite.Progress != nil {
			opts.Rewrite.Progress(fmt.Sprintf("comparing weights, %d MB read", read>>20))
		}
		return ctx.Err()
	})
	if err := d.compareWeights(digest, before, after); err != nil {
		return d, err
	}
	if err := d.compareLayers(ctx, models, opts.Rewrite); err != nil { // the last: what is measured may be inlined
		return d, err
	}
	d.Same = d.Graph && len(d.Differences) == 0
	return d, nil
}

// compareLayers compares what the attention layers of two models compute.
func (d *Report) compareLayers(ctx context.Context, models [2]*onnx.Model, opts rewrite.Options) error {
	var texts [2][]string
	for i, m := range models {
		seen, err := audit.Look(ctx, m, opts)
		if err != nil && (ctx.Err() != nil || errors.Is(err, rewrite.ErrMemory)) {
			return err
		}
		if err != nil {
			d.Notes = append(d.Notes, fmt.Sprintf("the attention layers of %s are not compared: %v", m.Path, err))
			return nil
		}
		for _, layer := range seen.Layers {
			texts[i] = append(texts[i], layer.Describe())
		}
	}
	var list []Difference
	var layers []int
	for i := range max(len(texts[0]), len(texts[1])) {
		if was, is := at(texts[0], i), at(texts[1], i); was != is {
			list, layers = append(list, Difference{What: Attention, Expected: was, Found: is}), append(layers, i)
		}
	}
	list, where := ranges.Together(list, layers)
	for i := range list {
		list[i].Where = where[i]
	}
	d.add(Attention, list)
	return nil
}
