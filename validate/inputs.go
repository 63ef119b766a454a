package validate

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

// mostRows is how many prompts are compared at once.
const mostRows = 16

// ReadText reads two rows for Options.Rows: the first tokens of a text, by the tokenizer.json of
// the model, and half as many. A length of 0 is DefaultLength.
func ReadText(path, model string, length int) ([][]int64, error) {
	text, tk, err := open(path, model)
	if err != nil {
		return nil, err
	}
	ids, err := tk.EncodeWithSpecial(text)
	if err != nil {
		return nil, err
	}
	if length == 0 {
		length = DefaultLength
	}
	ids = ids[:min(len(ids), length)]
	return trimmed(path, [][]int64{ids, ids[:max(1, len(ids)/2)]}, length)
}

// ReadPrompts reads a row of each line of a text, by the tokenizer.json of the model. Rows are cut
// at a length, unless it is 0.
func ReadPrompts(path, model string, length int) (rows [][]int64, err error) {
	text, tk, err := open(path, model)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(text) {
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
	return trimmed(path, rows, length)
}

// open reads a text, and opens the tokenizer of a model.
func open(path, model string) (string, *tokenizer.Tokenizer, error) {
	b, err := configfile.Read(path, configfile.Text)
	if err != nil {
		return "", nil, err
	}
	tk, err := tokenizer.Open(lm.Folder(model))
	if err != nil {
		return "", nil, fmt.Errorf("a text needs the model's tokenizer in %s: %w", filepath.Dir(model), err)
	}
	return string(b), tk, nil
}

// ArchiveError says why a file could not be read as NumPy's archive.
type ArchiveError struct{ Err error }

func (e *ArchiveError) Error() string { return e.Err.Error() }
func (e *ArchiveError) Unwrap() error { return e.Err }

// ReadArrays reads rows from an archive of NumPy arrays: input_ids, without the padding that
// attention_mask tells. Rows are cut at a length, unless it is 0. The error is an *ArchiveError
// where the file is no archive.
func ReadArrays(path string, length int) (rows [][]int64, err error) {
	f, err := npz.Open(path)
	if err != nil {
		return nil, &ArchiveError{err}
	}
	defer f.Close()
	ids, shape, err := f.Int64("input_ids")
	if err != nil {
		return nil, err
	}
	if len(shape) != 2 {
		return nil, fmt.Errorf("%s: input_ids has the shape %v; expected [batch, length]", path, shape)
	}
	mask := slices.Repeat([]int64{1}, len(ids))
	if slices.Contains(f.Keys(), "attention_mask") {
		var of []int
		if mask, of, err = f.Int64("attention_mask"); err != nil {
			return nil, err
		}
		if !slices.Equal(of, shape) {
			return nil, fmt.Errorf("%s: attention_mask has the shape %v and input_ids %v; expected the same", path, of, shape)
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
			return nil, fmt.Errorf("%s: row %d has only padding", path, b)
		}
		rows = append(rows, row)
	}
	return trimmed(path, rows, length)
}

// trimmed cuts rows at a length, unless it is 0, and refuses those that are too short.
func trimmed(path string, rows [][]int64, length int) ([][]int64, error) {
	longest := 0
	for i := range rows {
		if length > 0 {
			rows[i] = rows[i][:min(len(rows[i]), length)]
		}
		longest = max(longest, len(rows[i]))
	}
	if longest < MinLength {
		return nil, fmt.Errorf("%s: its longest row has %d tokens; at least %d are needed to compare prefill and decode", path, longest, MinLength)
	}
	return rows, nil
}
