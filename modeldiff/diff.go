package modeldiff

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/rope-rewrite/rope-rewrite/audit"
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

	Methods  []Change `json:"methods"` // what rope-rewrite was asked for, with every parameter
	Sites    []Change `json:"layers"`  // what attention layers compute; Name says which
	Nodes    []Count  `json:"nodes"`   // by op
	Inputs   []Change `json:"inputs"`  // of the graph
	Outputs  []Change `json:"outputs"` // of the graph
	Opsets   []Change `json:"opsets"`
	Metadata []Change `json:"metadata"`
	Weights  Weights  `json:"weights"`

	Notes []string `json:"notes"` // what could not be compared, and why
}

// Change is one difference. A or B is "" if that model does not have the thing.
type Change struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// Count says how many nodes of one op there are.
type Count struct {
	Op string `json:"op"` // with its domain, where that is not the standard one
	A  int    `json:"a"`
	B  int    `json:"b"`
}

// Options says how models are compared. The zero value evaluates them in this process.
type Options struct {
	Rewrite rewrite.Options // the libraries and the worker that evaluate; its Progress is told what is done
}

// Run compares two model files. The error says why one could not be read.
func Run(ctx context.Context, a, b string, opts Options) (*Report, error) {
	d := &Report{A: a, B: b, Notes: []string{}}
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
	d.Nodes = countNodes(models)
	d.Inputs = changes(values(models[0].Graph.Inputs), values(models[1].Graph.Inputs))
	d.Outputs = changes(values(models[0].Graph.Outputs), values(models[1].Graph.Outputs))
	d.Opsets = changes(opsets(models[0]), opsets(models[1]))
	d.Metadata = changes(metadata(models[0]), metadata(models[1]))
	d.Methods = changes(d.methods(models[0]), d.methods(models[1]))
	var err error
	d.Weights, err = compareWeights(models[0], models[1], func(read int64) error {
		if opts.Rewrite.Progress != nil {
			opts.Rewrite.Progress(fmt.Sprintf("comparing weights, %d MB read", read>>20))
		}
		return ctx.Err()
	})
	if err != nil {
		return d, err
	}
	if n := len(d.Weights.Unread); n > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d weights are not compared: %s", n, d.Weights.Unread[0].Why))
	}
	if err := d.compareLayers(ctx, models, opts.Rewrite); err != nil { // the last: what is measured may be inlined
		return d, err
	}
	d.Same = d.Graph && !d.Weights.differ() && len(d.Methods)+len(d.Sites)+len(d.Nodes)+len(d.Inputs)+len(d.Outputs)+len(d.Opsets)+len(d.Metadata) == 0
	return d, nil
}

// compareLayers compares what the attention layers of two models compute.
func (d *Report) compareLayers(ctx context.Context, models [2]*onnx.Model, opts rewrite.Options) error {
	var texts [2][]entry
	for i, m := range models {
		seen, err := audit.Look(ctx, m, opts)
		if err != nil && (ctx.Err() != nil || errors.Is(err, rewrite.ErrMemory)) {
			return err
		}
		if err != nil {
			d.Notes = append(d.Notes, fmt.Sprintf("the attention layers of %s are not compared: %v", m.Path, err))
			d.Sites = []Change{}
			return nil
		}
		for place, layer := range seen.Layers {
			texts[i] = append(texts[i], entry{fmt.Sprint(place), layer.Describe()})
		}
	}
	d.Sites = together(changes(texts[0], texts[1]))
	return nil
}

// together makes one change of equal ones of neighbouring layers.
func together(list []Change) (out []Change) {
	out = []Change{}
	for i := 0; i < len(list); {
		last := i
		for last+1 < len(list) && list[last+1].A == list[i].A && list[last+1].B == list[i].B && isNext(list[last].Name, list[last+1].Name) {
			last++
		}
		c := list[i]
		if last > i {
			c.Name = "layers " + list[i].Name + "-" + list[last].Name
		} else {
			c.Name = "layer " + c.Name
		}
		out = append(out, c)
		i = last + 1
	}
	return out
}

func isNext(a, b string) bool {
	var x, y int
	_, errX := fmt.Sscan(a, &x)
	_, errY := fmt.Sscan(b, &y)
	return errX == nil && errY == nil && y == x+1
}
