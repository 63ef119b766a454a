package plainonnx

import (
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// maxTableBytes bounds the size of a table: a model file holds 2 GiB, and has a table of
// cosines and one of sines.
const maxTableBytes = 1 << 30

// tableRows returns how many rows a table of the site is to have. A call beyond the end of
// a table fails, so the table must cover the whole context, or all positions for which
// the scaling is meant.
func (s Layer) tableRows(table *onnx.Tensor) (int64, error) {
	have, known := table.Dims[0], s.Known
	if known.Original == 0 {
		known.Original = have
	}
	want := known.Length
	if want == 0 {
		want = rope.Reachable(s.Specs, known)
	}
	if want == 0 {
		return 0, fmt.Errorf("its tables of cosines and sines end at %d tokens, and %s does not say how many tokens they must reach; give --context", have, s.scaling())
	}
	if size := float64(want) * float64(table.ByteLen()/have); want > have && size > maxTableBytes {
		return 0, fmt.Errorf("tables of cosines and sines for %d tokens would take %.3g GB each, but a model file holds at most 2 GB", want, size/1e9)
	}
	return max(have, want), nil
}

// scaling names the scaling methods of the site.
func (s Layer) scaling() string {
	var names []string
	for _, spec := range s.Specs {
		if spec.Axis == rope.ScalingAxis {
			names = append(names, spec.Axis.String()+" "+spec.String())
		}
	}
	return strings.Join(names, " and ")
}
