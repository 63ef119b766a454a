package lm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/internal/links"
	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/lm/sample"
)

// Generation is what a folder's configuration says of texts: config.json, before that generation_config.json,
// and before both genai_config.json.
type Generation struct {
	End       []int64        // tokens that end a text
	Sample    sample.Options // greedy unless do_sample is true
	MaxTokens int            // max_new_tokens; 0 where it is not said

	context int // tokens that the model is meant for; 0 where it is not said
}

// usualTopK is transformers' top_k where a configuration samples and does not say it.
const usualTopK = 50

// sampling has the keys that generation_config.json and the search of genai_config.json share.
type sampling struct {
	Sample      *bool    `json:"do_sample"`
	Temperature *float64 `json:"temperature"`
	TopK        *int     `json:"top_k"`
	TopP        *float64 `json:"top_p"`
	MinP        *float64 `json:"min_p"`
	Repetition  *float64 `json:"repetition_penalty"`
}

// generationKeys are those of config.json and generation_config.json that are read here.
type generationKeys struct {
	sampling
	End       tokenList `json:"eos_token_id"`
	MaxTokens *int      `json:"max_new_tokens"`
}

// genAI is what genai_config.json says of a text.
type genAI struct {
	Model struct {
		Context *int      `json:"context_length"`
		End     tokenList `json:"eos_token_id"`
		Decoder struct {
			Filename string `json:"filename"`
		} `json:"decoder"`
	} `json:"model"`
	Search sampling `json:"search"`
}

// tokenList is a number or a list of numbers.
type tokenList []int64

func (l *tokenList) UnmarshalJSON(text []byte) error {
	var one int64
	var many []int64
	switch {
	case bytes.Equal(text, []byte("null")):
		return nil // what another file says stays
	case json.Unmarshal(text, &one) == nil:
		*l = tokenList{one}
	case json.Unmarshal(text, &many) == nil:
		*l = many
	default:
		return fmt.Errorf("eos_token_id %s is neither a number nor a list of numbers", text)
	}
	return nil
}

// readGeneration reads a folder's configuration.
func readGeneration(folder string) (g Generation, err error) {
	var keys generationKeys
	for _, name := range []string{"config.json", "generation_config.json"} {
		if err := readJSON(filepath.Join(folder, name), &keys); err != nil {
			return g, err
		}
	}
	genai, err := readGenAI(folder)
	if err != nil {
		return g, err
	}
	g.context = int(modelconfig.ReadIn(links.Folder{Path: folder}).Positions().Value)
	set(&g.context, genai.Model.Context)
	set(&g.MaxTokens, keys.MaxTokens)
	if g.End = keys.End; len(genai.Model.End) > 0 {
		g.End = genai.Model.End
	}
	g.Sample = keys.over(genai.Search).options()
	return g, nil
}

// over takes what another file says before what this one does.
func (s sampling) over(other sampling) sampling {
	prefer(&s.Sample, other.Sample)
	prefer(&s.Temperature, other.Temperature)
	prefer(&s.TopK, other.TopK)
	prefer(&s.TopP, other.TopP)
	prefer(&s.MinP, other.MinP)
	prefer(&s.Repetition, other.Repetition)
	return s
}

func prefer[T any](value **T, other *T) {
	if other != nil {
		*value = other
	}
}

func set[T any](value *T, given *T) {
	if given != nil {
		*value = *given
	}
}

func (s sampling) options() (o sample.Options) {
	set(&o.RepetitionPenalty, s.Repetition)
	if s.Sample == nil || !*s.Sample {
		return o
	}
	o.Temperature, o.TopK = 1, usualTopK
	set(&o.Temperature, s.Temperature)
	set(&o.TopK, s.TopK)
	set(&o.TopP, s.TopP)
	set(&o.MinP, s.MinP)
	return o
}

func readGenAI(folder string) (config genAI, err error) {
	err = readJSON(filepath.Join(folder, "genai_config.json"), &config)
	return config, err
}

// readJSON reads a file over what is there already; there need not be one.
func readJSON(path string, into any) error {
	b, err := configfile.ReadBeside(path, configfile.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
