package cli

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testfuzz"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// FuzzFlags: a flag, a space and its value. It is read or refused in one line. A method that is read is
// written as it is read again.
func FuzzFlags(f *testing.F) {
	seeds := []string{
		"scaling yarn:factor=4@0-3,7", "positions string:shift=L/3@all", "mask sliding-window:window=4k@full", "mask anchor@windowed",
		"layers 0-3,7", "size 1.5GB", "tokens -8k", "list 1k,2k", "method scaling yarn:factor=2; positions string",
		`parameters {"rope_type": "yarn", "factor": 2}`, `parameters {"full_attention": {"rope_type": "yarn", "factor": 2}}`,
		"documents separator:5,ends", "documents input:ids", "kv fixed:capacity=8k,type=int8,input=n,ring=true", "kv growing:type=int8", "logits last:input=x",
		"target contrib:onnxruntime=1.22", "target onnx", "cache raw", "angles original", "precision fast", "base carried", "fallback none", "weights link", "mask ntk-by-parts:\n", "kv growing:type=iowing:ty\nt8",
	}
	for _, name := range []string{"yarn", "longrope", "ntk-by-parts", "dual-chunk", "first-keys"} {
		seeds = append(seeds, "scaling "+name+":=", "positions "+name, "mask "+name+":count=1")
	}
	testfuzz.Run(f, seeds, 4000, func(t testing.TB, input []byte) bool {
		flag, value, _ := strings.Cut(string(input), " ")
		opts, err := set(flag, value)
		if err != nil {
			oneLine(t, err)
			return false
		}
		for _, s := range opts.Edits {
			again, err := rope.ParseSpec(s.Axis, s.String())
			if err != nil || !reflect.DeepEqual(again, s) {
				t.Errorf("%v comes back as %v, %v", s, again, err)
			}
		}
		for _, e := range opts.LayerEdits {
			if e.Layers != nil {
				e.Layers(0)
			}
			if e.String() == "" {
				t.Errorf("%q has no text", value)
			}
		}
		return true
	})
}

// set reads a flag's value.
func set(flag, value string) (opts rewrite.Options, err error) {
	axes := methodAxes()
	if i := slices.IndexFunc(axes, func(a rope.Axis) bool { return a.String() == flag }); i >= 0 {
		_, err = AddEdit(&opts, axes[i], value)
		return opts, err
	}
	switch flag {
	case "layers":
		var l Layers
		if l, err = ParseLayers(value); err == nil {
			l.Has(1)
			err = CheckLayers([]Selection{{"--layers", l}}, 1<<62)
		}
	case "size":
		_, err = ParseSize(value)
	case "tokens":
		err = new(TokenCount).Set(value)
	case "list":
		err = new(TokenList).Set(value)
	case "method":
		err = AddMethod(&opts, value)
	case "parameters":
		err = AddRopeParameters(&opts, "{"+value)
	default:
		if !slices.ContainsFunc(wordFlags(), func(f wordFlag) bool { return f.flag == flag }) {
			return opts, errors.New("no flag")
		}
		err = SetWord(&opts, flag, value)
	}
	return opts, err
}

func oneLine(t testing.TB, err error) {
	t.Helper()
	if text := err.Error(); text == "" || strings.Contains(text, "\n") {
		t.Errorf("the error is not one line: %q", text)
	}
}
