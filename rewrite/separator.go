package rewrite

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Separator lets the patched model count documents by itself: each begins with
// a certain token, or ends with it. It is for models without a cache: with one,
// a call sees new tokens only and cannot tell to which document the others
// belong.
type Separator struct {
	Token int64
	Ends  bool // the token is a document's last one instead of its first
}

func (s Separator) String() string {
	if s.Ends {
		return fmt.Sprintf("separator:%d,ends", s.Token)
	}
	return fmt.Sprintf("separator:%d", s.Token)
}

// documentCounter makes document ids of the tokens: documents count from 1, and
// for masks that have an anchor the first real token is 0.
type documentCounter struct {
	separator *Separator
	builder
	made map[string]bool
}

// ids returns the value that holds document ids for a site's mask.
func (c *documentCounter) ids(f analysed, m rope.Mask) (string, error) {
	if f.lifted.layouts.cached {
		return "", errors.New("documents cannot be counted from a separator in a model with a cache: a call gets new tokens only, and to which documents the cached ones belong is not told; give --documents input and the ids of all tokens")
	}
	if f.scope.where != "" {
		return "", fmt.Errorf("it stands in %s, where no documents are counted; give --documents input", f.scope.where)
	}
	tokens, err := tokenInput(f.scope.view)
	if err != nil {
		return "", err
	}
	anchor := m.Documents == rope.AnchorDocument
	c.stem = "rope_rewrite/documents"
	name := c.value("ids")
	if anchor {
		name = c.value("anchored_ids")
	}
	if c.made[name] {
		return name, nil
	}
	if !c.made[c.value("ids")] {
		c.count(c.int64s(tokens))
		c.made[c.value("ids")] = true
	}
	if anchor && !c.made[name] {
		c.anchored(f.lifted.mask, tokens.Name, name)
		c.made[name] = true
	}
	return name, nil
}

// count makes ids from 1 on.
func (c *documentCounter) count(tokens string) {
	axis, one := c.scalar("axis", 1), c.scalar("one", 1)
	is := c.add("Equal", []string{tokens, c.scalar("separator", c.separator.Token)}, c.value("is_separator"))
	each := c.add("Cast", []string{is}, c.value("separators"), onnx.IntAttr("to", int64(onnx.Int64)))
	exclusive := int64(0)
	if c.separator.Ends {
		exclusive = 1
	}
	before := c.add("CumSum", []string{each, axis}, c.value("counted"), onnx.IntAttr("exclusive", exclusive))
	c.add("Add", []string{before, one}, c.value("ids"))
}

// anchored makes the first real token of each row the anchor.
func (c *documentCounter) anchored(mask *onnx.ValueInfo, tokens, name string) {
	var real string
	if mask != nil {
		real = c.add("Cast", []string{mask.Name}, c.value("real"), onnx.IntAttr("to", int64(onnx.Bool)))
	} else {
		real = c.add("Equal", []string{tokens, tokens}, c.value("real")) // all of them
	}
	real = c.add("Cast", []string{real}, c.value("real_int64"), onnx.IntAttr("to", int64(onnx.Int64)))
	place := c.add("CumSum", []string{real, c.value("axis")}, c.value("place"))
	first := c.add("Equal", []string{place, c.value("one")}, c.value("first"))
	c.add("Where", []string{first, c.scalar("none", 0), c.value("ids")}, name)
}

// write puts the nodes into the graph, in front of all others.
func (c *documentCounter) write(g *onnx.Graph) {
	for _, t := range c.constants {
		g.AddInitializer(t)
	}
	g.Nodes = append(slices.Clone(c.nodes), g.Nodes...)
}

// tokenInput finds the input that holds tokens: what picks rows of the largest
// table.
func tokenInput(g *graph) (*onnx.ValueInfo, error) {
	var found *onnx.ValueInfo
	rows := int64(0)
	for _, n := range g.nodes {
		if !standard(n, "Gather") || n.Int("axis", 0) != 0 {
			continue
		}
		table := g.constants[n.Inputs[0]]
		if table == nil || len(table.Dims) != 2 {
			continue
		}
		v := n.Inputs[1]
		for g.producer[v] != nil && standard(g.producer[v], "Cast", "Reshape", "Identity") {
			v = g.producer[v].Inputs[0]
		}
		in := g.inputs[v]
		if in == nil || len(in.Shape) != 2 || in.Type != onnx.Int64 && in.Type != onnx.Int32 {
			continue
		}
		if table.Dims[0] > rows {
			found, rows = in, table.Dims[0]
		}
	}
	if found == nil {
		return nil, errors.New("no input of token ids [batch, length] picks rows of a table of embeddings, so documents cannot be counted; give --documents input")
	}
	return found, nil
}
