package lm

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/sidefile"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// signature is what a model takes and gives.
type signature struct {
	inputs, outputs []string
	caches          []cache
	vocabulary      int64 // size of the logits' last dimension; 0 when the model does not say
	capacity        int64 // tokens that the caches hold; 0 when they grow
}

// cache is one past input, float32 [batch, heads, past or capacity, size], and
// the present output that continues it.
type cache struct {
	past, present string
	heads, size   int64
}

// Names that exporters and rope-rewrite give.
const (
	pastPrefix    = "past_key_values."
	presentPrefix = "present."
	documentIDs   = "document_ids"
	cacheLength   = "cache_length"
)

// readSignature finds inputs, outputs and caches by their names. A size that
// the model leaves open, as ONNX Runtime GenAI's builder does, is in config.json.
func readSignature(g *onnx.Graph, folder string) (*signature, error) {
	s := &signature{}
	for _, out := range g.Outputs {
		s.outputs = append(s.outputs, out.Name)
		if n := len(out.Shape); out.Name == "logits" && n > 0 && out.Shape[n-1].Known() {
			s.vocabulary = out.Shape[n-1].Value
		}
	}
	fixed := false
	for _, in := range g.Inputs {
		s.inputs = append(s.inputs, in.Name)
		switch {
		case slices.Contains([]string{"input_ids", "attention_mask", "position_ids", documentIDs}, in.Name):
			if in.Type != onnx.Int64 {
				return nil, fmt.Errorf("input %s has element type %v, only int64 can be fed", in.Name, in.Type)
			}
		case in.Name == cacheLength:
			fixed = true
		case strings.HasPrefix(in.Name, pastPrefix):
			c, err := s.cache(in, folder)
			if err != nil {
				return nil, err
			}
			s.caches = append(s.caches, c)
			s.capacity = in.Shape[2].Value
		default:
			return nil, fmt.Errorf("input %s is none that can be fed (input_ids, attention_mask, position_ids, %s, %s, %sN.key|value)", in.Name, documentIDs, cacheLength, pastPrefix)
		}
	}
	switch {
	case !slices.Contains(s.inputs, "input_ids") || !slices.Contains(s.outputs, "logits"):
		return nil, errors.New("not a language model: it has no input input_ids or no output logits")
	case len(s.caches) == 0:
		return nil, errors.New("it was exported without a key-value cache; export it with one (for Optimum: task text-generation-with-past)")
	case !fixed:
		s.capacity = 0
	case s.capacity == 0:
		return nil, fmt.Errorf("it has an input %s but caches of no known capacity", cacheLength)
	case s.vocabulary == 0:
		return nil, errors.New("its logits' last dimension is not known, which a cache of fixed capacity needs here")
	}
	return s, nil
}

func (s *signature) takes(input string) bool { return slices.Contains(s.inputs, input) }

func (s *signature) cache(in *onnx.ValueInfo, folder string) (cache, error) {
	c := cache{past: in.Name, present: presentPrefix + strings.TrimPrefix(in.Name, pastPrefix)}
	if in.Type != onnx.Float || len(in.Shape) != 4 || !in.Shape[1].Known() {
		return c, fmt.Errorf("input %s is %v %v, want float32 [batch, heads, past, size] with known heads", in.Name, in.Type, in.Shape)
	}
	if !slices.Contains(s.outputs, c.present) {
		return c, fmt.Errorf("input %s has no output %s that continues it", c.past, c.present)
	}
	c.heads, c.size = in.Shape[1].Value, in.Shape[3].Value
	if !in.Shape[3].Known() {
		var err error
		if c.size, err = headSize(folder); err != nil {
			return c, fmt.Errorf("input %s leaves its last size open: %w", in.Name, err)
		}
	}
	return c, nil
}

// headSize reads the size of a head from the model's config.json.
func headSize(folder string) (int64, error) {
	b, err := sidefile.Read(filepath.Join(folder, "config.json"), sidefile.Config)
	if err != nil {
		return 0, err
	}
	var config struct {
		Head   int64 `json:"head_dim"`
		Hidden int64 `json:"hidden_size"`
		Heads  int64 `json:"num_attention_heads"`
	}
	if err := json.Unmarshal(b, &config); err != nil {
		return 0, fmt.Errorf("%s: %w", filepath.Join(folder, "config.json"), err)
	}
	if config.Head == 0 && config.Heads > 0 {
		config.Head = config.Hidden / config.Heads
	}
	if config.Head <= 0 {
		return 0, fmt.Errorf("%s gives neither head_dim nor hidden_size and num_attention_heads", filepath.Join(folder, "config.json"))
	}
	return config.Head, nil
}
