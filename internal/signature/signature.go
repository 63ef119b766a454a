package signature

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Signature is what a model takes and gives.
type Signature struct {
	Inputs  []Input  // what has to be fed, in the model's order
	Outputs []string // all, in the model's order
	Caches  []Cache  // in the order of their inputs
	Memory  []Cache  // what an encoder gave: every call reads it, and none continues it
	Logits  string   // the output [batch, length, vocabulary], of a model that takes Places [batch, 1, vocabulary]

	LogitsType onnx.DataType
	Vocabulary int64 // size of the logits' last dimension; 0 when the model does not say
	Rows       int64 // of the longest cache of fixed capacity; 0 when caches grow or there are none
	Capacity   int64 // tokens that such caches hold; 0 when they grow, or when new tokens take the place of old ones in all of them
	Batch      int64 // rows of a call, of a model that takes no other number; else 0
	Length     int64 // tokens of each row in a call, likewise

	// LengthTracked says that the cache counts the tokens of each row and no mask
	// hides any: padding stands on the right of the first call, and later calls of
	// several rows take one token each.
	LengthTracked bool
}

// Input is one input that has to be fed.
type Input struct {
	Name  string
	Role  Role
	Type  onnx.DataType
	Cache int   // index in Caches, of a past input, or in Memory
	Axes  int64 // of positions [axes, batch, length], where a token has several; 0 for [batch, length]
}

// Cache is a past input [batch, heads, rows, size] and the present output that
// continues it.
type Cache struct {
	Past, Present string
	Heads         int64 // 0 when the model does not say
	Rows          int64 // of a cache whose length is given; 0 of one that grows
	Size          int64 // of one head
	Ring          Ring
}

// Ring is a cache of fixed capacity in which new tokens take the place of the oldest, but for the first ones. The
// zero value is none.
type Ring struct {
	First  int64 // tokens that stay
	Window int64 // tokens that a query sees of the others
}

// Row is the row of a token.
func (c Cache) Row(token int64) int64 {
	if c.Ring.Window == 0 || token < c.Ring.First {
		return token
	}
	return c.Ring.First + (token-c.Ring.First)%(c.Rows-c.Ring.First)
}

// Reaches reports whether a cache that has had so many tokens still has those that the first ones of them need to
// be continued.
func (c Cache) Reaches(tokens, first int64) bool {
	return c.Ring.Window == 0 || tokens <= c.Rows || first == 0 || tokens-first <= c.Rows-c.Ring.First-c.Ring.Window+1
}

// Filled is how many rows of padding stand before the first tokens in a cache whose length is
// given and not counted; 0 of any other.
func (s *Signature) Filled() int64 {
	if s.Rows > 0 || len(s.Caches) == 0 {
		return 0
	}
	return s.Caches[0].Rows
}

// CacheType is the element type of keys and values in the caches, and how many inputs have them: the scales
// of caches of int8 stand beside these.
func (s *Signature) CacheType() (t onnx.DataType, count int) {
	for _, in := range s.Inputs {
		switch {
		case in.Role != Past:
		case count == 0 || in.Type == onnx.Int8 && t != onnx.Int8:
			t, count = in.Type, 1
		case in.Type == t:
			count++
		}
	}
	return t, count
}

// Dims is the shape of an empty cache for so many rows of tokens.
func (c Cache) Dims(batch int64) []int64 { return []int64{batch, c.Heads, c.Rows, c.Size} }

// Read reads the signature of a model. Its folder may hold a config.json, which
// is asked for the size of a head that the model itself leaves open. An input
// that is none of the known ones is an error, as it could not be fed.
func Read(m *onnx.Model, folder string) (*Signature, error) {
	s := &Signature{LengthTracked: tracksLengths(m.Graph)}
	back := passedOn(m.Graph)
	if err := s.readInputs(m.Graph, folder, slices.Collect(maps.Values(back))); err != nil {
		return nil, err
	}
	if s.Takes(CacheLength) {
		if len(s.Caches) == 0 || s.Caches[0].Rows == 0 {
			return nil, errors.New("its caches have a length input but no capacity")
		}
		s.readRings(m.Graph)
	}
	if !s.readOutputs(m.Graph, back) {
		return nil, errors.New("expected one output of logits and as many cache outputs as cache inputs")
	}
	return s, nil
}

// readRings reads what the caches of fixed capacity hold.
func (s *Signature) readRings(g *onnx.Graph) {
	for i := range s.Caches {
		c := &s.Caches[i]
		for _, n := range g.Nodes {
			reads := slices.ContainsFunc([]string{"past_key", "past_value", "past_key_scale", "past_value_scale"}, func(name string) bool { return opInput(n, name) == c.Past })
			if reads && n.Int("cache_ring", 0) == 1 {
				c.Ring = Ring{First: n.Int("first_keys", 0), Window: n.Int("window", 0)}
			}
		}
		if s.Rows = max(s.Rows, c.Rows); c.Ring.Window == 0 {
			s.Capacity = max(s.Capacity, c.Rows)
		}
	}
	if s.Takes(Documents) { // whose ids stand side by side for all tokens
		s.Capacity = s.Rows
	}
}

// Takes reports whether the model has an input of a role.
func (s *Signature) Takes(r Role) bool { return s.Name(r) != "" }

// Name is the name of the input of a role; empty when there is none.
func (s *Signature) Name(r Role) string {
	i := slices.IndexFunc(s.Inputs, func(in Input) bool { return in.Role == r })
	if i < 0 {
		return ""
	}
	return s.Inputs[i].Name
}

func (s *Signature) readInputs(g *onnx.Graph, folder string, passed []string) error {
	read := readByOp(g)
	for _, v := range g.Inputs {
		if t := g.Initializer(v.Name); t != nil {
			if placesLogits(v, t) {
				s.Inputs = append(s.Inputs, Input{Name: v.Name, Role: Places, Type: v.Type})
			}
			continue // else a weight, which old files list among the inputs
		}
		in := Input{Name: v.Name, Role: roleOf(v, read), Type: v.Type}
		if slices.Contains(passed, v.Name) {
			in.Role = Passed
		}
		switch in.Role {
		case Tokens:
			if len(v.Shape) == 2 {
				s.Batch, s.Length = known(v.Shape[0]), known(v.Shape[1])
			}
		case 0:
			return fmt.Errorf("the input %q cannot be fed here (input_ids, attention_mask, position_ids, caches and what the rewriter adds can)", short.Name(v.Name))
		case Positions:
			if len(v.Shape) == 3 {
				if in.Axes = v.Shape[0].Value; !v.Shape[0].Known() || in.Axes < 1 {
					return fmt.Errorf("the input %q does not say how many positions a token has", short.Name(v.Name))
				}
			}
		case Past:
			c, err := newCache(g, v, folder)
			if err != nil {
				return err
			}
			in.Cache = len(s.Caches)
			s.Caches = append(s.Caches, c)
		}
		s.Inputs = append(s.Inputs, in)
	}
	return nil
}

// known is a dimension's value, 0 where it is open.
func known(d onnx.Dim) int64 {
	if !d.Known() {
		return 0
	}
	return d.Value
}

func newCache(g *onnx.Graph, v *onnx.ValueInfo, folder string) (Cache, error) {
	c := Cache{Past: v.Name, Heads: known(v.Shape[1]), Rows: known(v.Shape[2]), Size: known(v.Shape[3])}
	if v.Shape[3].Known() {
		return c, nil
	}
	var err error
	if c.Size, err = headSize(g, v.Name, folder); err != nil {
		return c, fmt.Errorf("the cache input %q leaves its last dimension open: %w", short.Name(v.Name), err)
	}
	return c, nil
}

// readOutputs finds the logits, and the present output of each cache. It
// reports whether all are there.
func (s *Signature) readOutputs(g *onnx.Graph, back map[string]string) bool {
	var present []string // outputs that have a cache's shape
	for _, v := range g.Outputs {
		if back[v.Name] != "" {
			continue
		}
		s.Outputs = append(s.Outputs, v.Name)
		switch {
		case v.Name != logits && len(v.Shape) == 4:
			present = append(present, v.Name)
		case v.Name == logits || s.Logits == "":
			s.Logits, s.LogitsType, s.Vocabulary = v.Name, v.Type, 0
			if n := len(v.Shape); n > 0 && v.Shape[n-1].Known() {
				s.Vocabulary = v.Shape[n-1].Value
			}
		}
	}
	return s.Logits != "" && (s.pairByName() || s.pairByOrder(present) || s.pairSome(g, present))
}

// Names that exporters give.
const (
	logits        = "logits"
	pastPrefix    = "past_key_values."
	presentPrefix = "present."
)

// pairByName pairs past_key_values.N.key with present.N.key, and reports
// whether it could so pair every cache.
func (s *Signature) pairByName() bool {
	for i := range s.Caches {
		rest, ok := strings.CutPrefix(s.Caches[i].Past, pastPrefix)
		if !ok || !slices.Contains(s.Outputs, presentPrefix+rest) {
			return false
		}
		s.Caches[i].Present = presentPrefix + rest
	}
	return true
}

// pairSome pairs caches by name and takes those for an encoder's that have no output: their rows are
// counted otherwise than those of the others. It reports whether every cache is one or the other.
func (s *Signature) pairSome(g *onnx.Graph, present []string) bool {
	var caches, memory []Cache
	place := map[string]int{}
	for _, c := range s.Caches {
		rest, ok := strings.CutPrefix(c.Past, pastPrefix)
		if ok && slices.Contains(present, presentPrefix+rest) {
			c.Present = presentPrefix + rest
			place[c.Past] = len(caches)
			caches = append(caches, c)
			continue
		}
		place[c.Past] = len(memory)
		memory = append(memory, c)
	}
	rows := map[string]onnx.Dim{}
	for _, v := range g.Inputs {
		if len(v.Shape) == 4 {
			rows[v.Name] = v.Shape[2]
		}
	}
	own := func(c Cache) bool {
		return slices.ContainsFunc(caches, func(o Cache) bool { return rows[o.Past] == rows[c.Past] })
	}
	if len(caches) == 0 || len(caches) != len(present) || slices.ContainsFunc(memory, own) {
		return false
	}
	s.Caches, s.Memory = caches, memory
	for i := range s.Inputs {
		in := &s.Inputs[i]
		if in.Role != Past {
			continue
		}
		in.Cache = place[in.Name]
		if slices.ContainsFunc(memory, func(c Cache) bool { return c.Past == in.Name }) {
			in.Role = Memory
		}
	}
	return true
}

// pairByOrder pairs the caches with outputs in order, if they are as many.
func (s *Signature) pairByOrder(present []string) bool {
	if len(present) != len(s.Caches) {
		return false
	}
	for i, name := range present {
		s.Caches[i].Present = name
	}
	return true
}

// tracksLengths reports whether a model counts the tokens of each row, as
// GroupQueryAttention does and the op that takes its place.
func tracksLengths(g *onnx.Graph) bool {
	return slices.ContainsFunc(g.Nodes, func(n *onnx.Node) bool {
		return n.Domain == "com.microsoft" && n.OpType == "GroupQueryAttention" ||
			opInput(n, "total_length") != ""
	})
}
