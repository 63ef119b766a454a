package rewrite

import (
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// DocumentsInput is the usual name of the graph input that holds document ids.
const DocumentsInput = "document_ids"

// CacheLengthInput is the usual name of the graph input that says how many
// tokens a cache of fixed capacity holds in each row.
const CacheLengthInput = "cache_length"

// added is what a rewrite adds to the graph's inputs; empty names are not added.
type added struct {
	documents   string // int64 [batch, past + length]
	cacheLength string // int32 [batch]
}

// additions says which inputs the options ask for, and refuses names that the
// graph uses for something else.
func additions(m *onnx.Model, opts Options) (added, error) {
	a := added{documents: opts.Documents}
	if opts.FixedCapacity != 0 {
		a.cacheLength = opts.CacheLength
		if a.cacheLength == "" {
			a.cacheLength = CacheLengthInput
		}
	}
	names := map[string]bool{}
	for _, list := range [][]*onnx.ValueInfo{m.Graph.Inputs, m.Graph.Outputs} {
		for _, v := range list {
			names[v.Name] = true
		}
	}
	for _, t := range m.Graph.Initializers {
		names[t.Name] = true
	}
	for n := range m.Graph.AllNodes() {
		for _, o := range n.Outputs {
			names[o] = true
		}
	}
	for _, x := range []struct{ name, what, remedy string }{
		{a.documents, "document ids", "--documents input:NAME"},
		{a.cacheLength, "cache lengths", "--kv fixed:capacity=N,input=NAME"},
	} {
		if x.name != "" && names[x.name] {
			return added{}, fmt.Errorf("the graph has a value named %q already, so the new input for %s needs another name (%s)", x.name, x.what, x.remedy)
		}
		names[x.name] = true
	}
	return a, nil
}

// checkDocuments refuses a mask by document ids where there will be none.
func checkDocuments(m rope.Mask, documents string) error {
	if m.Documents != rope.NoDocuments && documents == "" {
		return errors.New("the mask goes by document ids, which the graph has not; give --documents input, which adds them as an input of the patched model, or --documents separator:TOKEN")
	}
	return nil
}

// used refuses document ids that nothing would read.
func (a added) used(changes []change, counter *documentCounter) error {
	if a.documents == "" && counter.separator == nil || len(changes) == 0 {
		return nil
	}
	for _, c := range changes {
		if c.reads.Documents != rope.NoDocuments {
			return nil
		}
	}
	return errors.New("nothing would read the document ids: give a --mask that goes by them (intra-document, intra-document-reset, anchor), or leave --documents away")
}

// declare adds the inputs to the graph.
func (a added) declare(g *onnx.Graph, changes []change) {
	batch := onnx.Dim{Param: "batch"}
	var tokens onnx.Dim
	for _, v := range g.Inputs {
		if v.HasShape && len(v.Shape) > 1 {
			batch = v.Shape[0]
			break
		}
	}
	tokens = onnx.Dim{Param: "document_tokens"}
	for _, c := range changes {
		if c.mask != nil && len(c.mask.Shape) == 2 {
			tokens = c.mask.Shape[1]
			break
		}
	}
	if a.documents != "" {
		g.AddInput(onnx.NewValueInfo(a.documents, onnx.Int64, batch, tokens))
	}
	if a.cacheLength != "" {
		g.AddInput(onnx.NewValueInfo(a.cacheLength, onnx.Int32, batch))
	}
}
