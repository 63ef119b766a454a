package lm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/lm/sample"
)

// Generation is what generation_config.json says, or config.json where there is none.
type Generation struct {
	End       []int64        // tokens that end a text
	Sample    sample.Options // greedy unless do_sample is true
	MaxTokens int            // max_new_tokens; 0 where it is not said
}

// readGeneration reads a folder's configuration. A key of generation_config.json goes before
// the same one of config.json.
func readGeneration(folder string) (g Generation, err error) {
	var file struct {
		End         json.RawMessage `json:"eos_token_id"`
		Sample      bool            `json:"do_sample"`
		Temperature *float64        `json:"temperature"`
		TopK        int             `json:"top_k"`
		TopP        float64         `json:"top_p"`
		MinP        float64         `json:"min_p"`
		Repetition  float64         `json:"repetition_penalty"`
		MaxTokens   int             `json:"max_new_tokens"`
	}
	for _, name := range []string{"config.json", "generation_config.json"} {
		path := filepath.Join(folder, name)
		b, err := configfile.Read(path, configfile.Config)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return g, err
		}
		before := slices.Clone(file.End)
		if err := json.Unmarshal(b, &file); err != nil {
			return g, fmt.Errorf("%s: %w", path, err)
		}
		if len(file.End) == 0 || string(file.End) == "null" {
			file.End = before
		}
		if g.End, err = endTokens(file.End); err != nil {
			return g, fmt.Errorf("%s: %w", path, err)
		}
	}
	g.MaxTokens = file.MaxTokens
	g.Sample.RepetitionPenalty = file.Repetition
	if !file.Sample {
		return g, nil
	}
	g.Sample = sample.Options{Temperature: 1, TopK: file.TopK, TopP: file.TopP, MinP: file.MinP, RepetitionPenalty: file.Repetition}
	if file.Temperature != nil {
		g.Sample.Temperature = *file.Temperature
	}
	return g, nil
}

// endTokens reads a number or a list of numbers.
func endTokens(text json.RawMessage) ([]int64, error) {
	var one int64
	var many []int64
	switch {
	case len(text) == 0 || string(text) == "null":
		return nil, nil
	case json.Unmarshal(text, &one) == nil:
		return []int64{one}, nil
	case json.Unmarshal(text, &many) == nil:
		return many, nil
	}
	return nil, fmt.Errorf("eos_token_id %s is neither a number nor a list of numbers", text)
}
