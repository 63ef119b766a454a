package rewrite

import (
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// A call that reaches beyond a table of cosines fails, however far the scaling
// in it is good for. So tables end where the context does, or where the scaling
// is good for no more.

// known is what holds for a site of what is known of the model. Where the graph
// carries a scaling, it reaches farther than what the model was trained on first.
func (l *lifted) known(c rope.Context) rope.Context {
	if _, ok := l.attention.Encoding.Base(); !ok {
		c.Original = 0
	}
	return c
}

// largestTable is what a table may take: a model file holds 2 GiB, and has one of
// cosines and one of sines.
const largestTable = 1 << 30

// rows returns how many rows a table of the site's is to have.
func (r retabled) rows(table *onnx.Tensor) (int64, error) {
	have, known := table.Dims[0], r.known
	if known.Original == 0 {
		known.Original = have
	}
	want := known.Length
	if want == 0 {
		want = rope.Reachable(r.specs, known)
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
func (r retabled) scaling() string {
	var names []string
	for _, s := range r.specs {
		if s.Axis == rope.ScalingAxis {
			names = append(names, s.Axis.String()+" "+s.String())
		}
	}
	return strings.Join(names, " and ")
}
