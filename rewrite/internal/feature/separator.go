package feature

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Separator lets the patched model count documents by itself: each begins or ends with a
// certain token. It is for models without a cache: with one, a call has only the new tokens
// and does not know the documents of the others.
type Separator struct {
	Token int64
	Ends  bool // the token is the last of a document instead of the first
}

func (s Separator) String() string {
	if s.Ends {
		return fmt.Sprintf("separator:%d,ends", s.Token)
	}
	return fmt.Sprintf("separator:%d", s.Token)
}

// ParseSeparator reads what String writes.
func ParseSeparator(text string) (*Separator, error) {
	token, ends := strings.CutSuffix(strings.TrimPrefix(text, "separator:"), ",ends")
	n, err := strconv.ParseInt(token, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is not a document separator: %w", short.Name(text), err)
	}
	return &Separator{Token: n, Ends: ends}, nil
}

// documentCounter makes document ids of the tokens: documents count from 1, and
// for masks that have an anchor the first real token is 0.
type documentCounter struct {
	separator *Separator
	ir.Builder
	made map[string]bool
}

// ids returns the value that holds document ids for a site's mask.
func (c *documentCounter) ids(f measure.Attention, m rope.Mask) (string, error) {
	if f.Measured.Layouts.Cached {
		return "", errors.New("a model with a cache cannot count documents by a separator: a call has only new tokens and does not know the documents of cached ones; give --documents input, and feed the ids of all tokens")
	}
	if f.Scope.Where != "" {
		return "", fmt.Errorf("it is in %s, where documents cannot be counted; give --documents input", short.Name(f.Scope.Where))
	}
	tokens, err := tokenInput(f.Scope.View)
	if err != nil {
		return "", err
	}
	anchor := m.Documents == rope.AnchorDocument
	c.Stem = "rope_rewrite/documents"
	name := c.Value("ids")
	if anchor {
		name = c.Value("anchored_ids")
	}
	if c.made[name] {
		return name, nil
	}
	if !c.made[c.Value("ids")] {
		c.count(c.Int64s(tokens))
		c.made[c.Value("ids")] = true
	}
	if anchor && !c.made[name] {
		c.anchored(f.Measured.Mask, tokens.Name, name)
		c.made[name] = true
	}
	return name, nil
}

// count makes ids from 1 on.
func (c *documentCounter) count(tokens string) {
	axis, one := c.Scalar("axis", 1), c.Scalar("one", 1)
	is := c.AddAs("is_separator", "Equal", []string{tokens, c.Scalar("separator", c.separator.Token)})
	each := c.AddAs("separators", "Cast", []string{is}, onnx.IntAttr("to", int64(onnx.Int64)))
	exclusive := int64(0)
	if c.separator.Ends {
		exclusive = 1
	}
	before := c.AddAs("counted", "CumSum", []string{each, axis}, onnx.IntAttr("exclusive", exclusive))
	c.AddAs("ids", "Add", []string{before, one})
}

// anchored makes the first real token of each row the anchor.
func (c *documentCounter) anchored(mask *onnx.ValueInfo, tokens, name string) {
	var real string
	if mask != nil {
		real = c.AddAs("real", "Cast", []string{mask.Name}, onnx.IntAttr("to", int64(onnx.Bool)))
	} else {
		real = c.AddAs("real", "Equal", []string{tokens, tokens}) // all of them
	}
	real = c.AddAs("real_int64", "Cast", []string{real}, onnx.IntAttr("to", int64(onnx.Int64)))
	place := c.AddAs("place", "CumSum", []string{real, c.Value("axis")})
	first := c.AddAs("first", "Equal", []string{place, c.Value("one")})
	c.AddTo(name, "Where", []string{first, c.Scalar("none", 0), c.Value("ids")})
}

// write puts the nodes into the graph, in front of all others.
func (c *documentCounter) write(g *onnx.Graph) {
	for _, t := range c.Constants {
		g.AddInitializer(t)
	}
	g.Nodes = append(slices.Clone(c.Nodes), g.Nodes...)
}

// tokenInput finds the input that holds tokens: what picks rows of the largest
// table.
func tokenInput(g *graph.Graph) (*onnx.ValueInfo, error) {
	var found *onnx.ValueInfo
	rows := int64(0)
	for _, n := range g.Nodes {
		if !ir.Standard(n, "Gather") || n.Int("axis", 0) != 0 {
			continue
		}
		table := g.Constants[n.Inputs[0]]
		if table == nil || len(table.Dims) != 2 {
			continue
		}
		v := n.Inputs[1]
		for g.Producer[v] != nil && ir.Standard(g.Producer[v], "Cast", "Reshape", "Identity") {
			v = g.Producer[v].Inputs[0]
		}
		in := g.Inputs[v]
		if in == nil || len(in.Shape) != 2 || in.Type != onnx.Int64 && in.Type != onnx.Int32 {
			continue
		}
		if table.Dims[0] > rows {
			found, rows = in, table.Dims[0]
		}
	}
	if found == nil {
		return nil, errors.New("the model has no input of token ids [batch, length] that selects embeddings, so documents cannot be counted; give --documents input")
	}
	return found, nil
}
