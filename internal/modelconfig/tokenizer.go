package modelconfig

import (
	"fmt"
	"slices"
)

// maxLength is the key of tokenizer_config.json for the number of tokens from which on tokenizers warn or truncate.
const maxLength = "model_max_length"

// ApplyTokenizer writes into tokenizer_config.json how many tokens the model is meant for now, where it named
// one of the lengths that the model had before. A larger length is no limit, and stays. The warning says what
// else is not written.
func (t *Text) ApplyTokenizer(context int64, before ...int64) (warning string, err error) {
	length := t.number(maxLength)
	switch {
	case length <= 0 || length >= float64(context):
		return "", nil
	case slices.Contains(before, int64(length)):
		return "", t.Set(maxLength, context)
	}
	return fmt.Sprintf("%s is %.0f, which is not the length that the model was trained for, and is left unchanged; the model is meant for %d tokens now", maxLength, length, context), nil
}
