package plainonnx

import (
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// largestTable is what a table may take: a model file holds 2 GiB, and has one of
// cosines and one of sines.
const largestTable = 1 << 30

// rows returns how many rows a table of the site's is to have.
func (r Site) rows(table *onnx.Tensor) (int64, error) {
	have, known := table.Dims[0], r.Known
	if known.Original == 0 {
		known.Original = have
	}
	want := known.Length
	if want == 0 {
		want = rope.Reachable(r.Specs, known)
	}
	if want == 0 {
		return 0, fmt.Errorf("its tables of cosines and sines end at %d tokens, and %s does not say how many it is for; give the context to reach (--context)", have, r.scaling())
	}
	if size := float64(want) * float64(table.ByteLen()/have); want > have && size > largestTable {
		return 0, fmt.Errorf("tables of cosines and sines for %d tokens would take %.3g GB each, and a model file holds 2 GB; give a shorter --context, or leave --target onnx out", want, size/1e9)
	}
	return max(have, want), nil
}

// scaling names the site's scaling.
func (r Site) scaling() string {
	var names []string
	for _, s := range r.Specs {
		if s.Axis == rope.ScalingAxis {
			names = append(names, s.Axis.String()+" "+s.String())
		}
	}
	return strings.Join(names, " and ")
}
