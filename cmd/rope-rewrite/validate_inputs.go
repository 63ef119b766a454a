package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// ownInputs are what a user feeds to validate, and where the page goes.
type ownInputs struct {
	text, prompts, npz, html string
}

func (o *ownInputs) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.text, "text", "", "`FILE` of a text to compare on, by the model's tokenizer.json: its first --length tokens, and half as many in a second row")
	f.StringVar(&o.prompts, "prompts", "", "`FILE` with a prompt in each line: rows of different length, padded")
	f.StringVar(&o.npz, "npz", "", "`FILE` of NumPy arrays named as the model's inputs: input_ids, and attention_mask where there is padding")
	f.StringVar(&o.html, "html", "", "write the comparison to `FILE` as a page, too")
}

// mostRows is how many prompts are compared at once.
const mostRows = 16

// rows are the tokens of the user's own inputs; nil where there are none.
func (o *ownInputs) rows(model string, length int) (rows [][]int64, err error) {
	given := slices.DeleteFunc([]string{o.text, o.prompts, o.npz}, func(s string) bool { return s == "" })
	switch {
	case len(given) > 1:
		return nil, usageError("--text, --prompts and --npz are three kinds of input; give one")
	case len(given) == 0:
		return nil, nil
	case o.npz != "":
		rows, err = arrayRows(o.npz)
	default:
		rows, err = o.textRows(model, length)
	}
	if err != nil {
		return nil, err
	}
	longest := 0
	for i := range rows {
		if length > 0 {
			rows[i] = rows[i][:min(len(rows[i]), length)]
		}
		longest = max(longest, len(rows[i]))
	}
	if longest < validate.MinLength {
		return nil, fmt.Errorf("%s: its longest row has %d tokens; at least %d are needed to compare prefill and decode", given[0], longest, validate.MinLength)
	}
	return rows, nil
}

// textRows are a text's tokens and half as many, or those of each prompt.
func (o *ownInputs) textRows(model string, length int) (rows [][]int64, err error) {
	path := o.text + o.prompts // one of them is empty
	b, err := configfile.Read(path, configfile.Text)
	if err != nil {
		return nil, err
	}
	tk, err := tokenizer.Open(lm.Folder(model))
	if err != nil {
		return nil, fmt.Errorf("a text needs the model's tokenizer in %s: %w", filepath.Dir(model), err)
	}
	if o.text != "" {
		ids, err := tk.EncodeWithSpecial(string(b))
		if err != nil {
			return nil, err
		}
		if length == 0 {
			length = validate.DefaultLength
		}
		ids = ids[:min(len(ids), length)]
		return [][]int64{ids, ids[:max(1, len(ids)/2)]}, nil
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			continue
		}
		ids, err := tk.EncodeWithSpecial(line)
		if err != nil {
			return nil, err
		}
		if len(ids) > 0 {
			rows = append(rows, ids)
		}
		if len(rows) > mostRows {
			return nil, fmt.Errorf("%s has more than %d prompts; give fewer at once", path, mostRows)
		}
	}
	return rows, nil
}

// arrayRows are the tokens of input_ids without the padding that attention_mask tells.
func arrayRows(path string) (rows [][]int64, err error) {
	f, err := npz.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--npz %w", err)
	}
	defer f.Close()
	ids, shape, err := f.Int64("input_ids")
	if err != nil {
		return nil, err
	}
	if len(shape) != 2 {
		return nil, fmt.Errorf("%s: input_ids has the shape %v; [batch, length] was expected", path, shape)
	}
	mask := slices.Repeat([]int64{1}, len(ids))
	if slices.Contains(f.Keys(), "attention_mask") {
		var of []int
		if mask, of, err = f.Int64("attention_mask"); err != nil {
			return nil, err
		}
		if !slices.Equal(of, shape) {
			return nil, fmt.Errorf("%s: attention_mask has the shape %v and input_ids %v; both the same was expected", path, of, shape)
		}
	}
	for b := range shape[0] {
		var row []int64
		for i := b * shape[1]; i < (b+1)*shape[1]; i++ {
			if mask[i] != 0 {
				row = append(row, ids[i])
			}
		}
		if len(row) == 0 {
			return nil, fmt.Errorf("%s: row %d is padding alone", path, b)
		}
		rows = append(rows, row)
	}
	return rows, nil
}
