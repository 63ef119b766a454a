package lm

import (
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/internal/signature"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// readSignature reads what a model takes and gives, and refuses what this
// package cannot run.
func readSignature(m *onnx.Model, folder string) (*signature.Signature, error) {
	s, err := signature.Read(m, folder)
	if err != nil {
		return nil, err
	}
	for _, in := range s.Inputs {
		if err := feedable(s, in); err != nil {
			return nil, err
		}
	}
	switch {
	case !s.Takes(signature.Tokens) || s.Logits == "":
		return nil, errors.New("not a language model: it has no input input_ids or no output of logits")
	case !isFloat(s.LogitsType):
		return nil, fmt.Errorf("its output %s has element type %v, want float32, float16 or bfloat16", s.Logits, s.LogitsType)
	case len(s.Caches) == 0:
		return nil, errors.New("it was exported without a key-value cache; export it with one (transformers: export_for_generation with multi_token_decode=True; Optimum: task text-generation-with-past)")
	case s.Rows > 0 && s.Vocabulary == 0:
		return nil, errors.New("the last dimension of its logits is not known, but a fixed-capacity cache needs it here")
	}
	return s, nil
}

// feedable says why an input cannot be fed by this package, if it cannot.
func feedable(s *signature.Signature, in signature.Input) error {
	switch in.Role {
	case signature.Past:
		c := s.Caches[in.Cache]
		switch {
		case !isFloat(in.Type) && in.Type != onnx.Int8 || c.Heads == 0:
			return fmt.Errorf("input %s is %v with %d heads, want float32, float16, bfloat16 or int8 [batch, heads, past, size] with known heads", short.Name(in.Name), in.Type, c.Heads)
		case c.Rows > 0 && s.Rows == 0:
			return fmt.Errorf("input %s has a cache of exactly %d tokens, but no input says how many it holds", short.Name(in.Name), c.Rows)
		}
		return nil
	case signature.Memory:
		return fmt.Errorf("input %s takes the output of an encoder, which is not supported here", short.Name(in.Name))
	case signature.Positions:
		if in.Axes > 0 && s.Rows > 0 {
			return fmt.Errorf("input %s takes %d positions for each token, which is not supported with a fixed-capacity cache", short.Name(in.Name), in.Axes)
		}
	case signature.CacheLength:
		return nil // int32, as the op reads it
	}
	switch {
	case in.Type == onnx.Int64, in.Type == onnx.Int32 && s.Rows == 0, in.Type == onnx.Bool && in.Role == signature.Branch:
		return nil
	}
	return fmt.Errorf("input %s has element type %v, which cannot be fed", short.Name(in.Name), in.Type)
}
