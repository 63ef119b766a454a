package cli

import (
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// ParseProveWith reads PATH or PATH:provider=NAME. A path may have colons of its own.
func ParseProveWith(text string) (with rewrite.ProveWith, _ error) {
	with.Runtime = text
	if i := strings.LastIndex(text, ":"); i >= 0 && strings.Contains(text[i:], "=") {
		key, value, _ := strings.Cut(text[i+1:], "=")
		if key != "provider" || value == "" {
			return with, fmt.Errorf("%s: expected PATH or PATH:provider=NAME, for example PATH:provider=CUDA", text)
		}
		with = rewrite.ProveWith{Runtime: text[:i], Provider: value}
	}
	if with.Runtime == "" {
		return with, fmt.Errorf("%q: expected the path of an ONNX Runtime library, or PATH:provider=NAME", text)
	}
	return with, nil
}
