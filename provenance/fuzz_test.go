package provenance_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testfuzz"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
)

// FuzzRead reads damaged records: it refuses them in one line, or reads what it can write and read again.
func FuzzRead(f *testing.F) {
	m := onnx.New()
	if err := provenance.Write(m, full()); err != nil {
		f.Fatal(err)
	}
	var seeds []string
	for _, text := range m.Metadata() {
		seeds = append(seeds, text)
	}
	seeds = append(seeds, "", `{"version":1}`,
		`{"version":1,"sites":[{"layers":[0],"nodes":["a"],"original":{"heads":1,"kv_heads":1,"head_size":2,"encoding":{"inv_freq":[1],"layout":"spiral"},"mask":{},"cache":"rotated"}}]}`)
	testfuzz.Run(f, seeds, 1000, func(t testing.TB, text []byte) bool {
		m := onnx.New()
		m.SetMetadata(provenance.Key, string(text))
		r, err := provenance.Read(m)
		if err != nil {
			if text := err.Error(); text == "" || strings.Contains(text, "\n") {
				t.Errorf("the error is not one line: %q", text)
			}
			return false
		}
		if err := provenance.Write(m, r); err != nil {
			t.Fatalf("it is read and cannot be written: %v", err)
		}
		again, err := provenance.Read(m)
		if err != nil {
			t.Fatalf("it is written and cannot be read: %v", err)
		}
		if err := provenance.Write(m, again); err != nil {
			t.Fatal(err)
		}
		if third, err := provenance.Read(m); err != nil || !reflect.DeepEqual(third, again) {
			t.Errorf("%+v became %+v, %v", again, third, err)
		}
		return true
	})
}
