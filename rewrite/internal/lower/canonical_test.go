package lower_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testmodel"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
)

func TestMain(m *testing.M) {
	testruntime.Examples()
	os.Exit(m.Run())
}

// TestCanonical: values whose axes stand in any order become [batch, heads, length, channels].
func TestCanonical(t *testing.T) {
	testruntime.Require(t)
	const batch, heads, rows, channels = 2, 3, 5, 4
	size := map[dim.Axis]int64{dim.BatchAxis: batch, dim.HeadAxis: heads, dim.RowAxis: rows, dim.ChannelAxis: channels, dim.MergedAxis: heads * channels, dim.BatchHeadAxis: batch * heads}
	for _, axes := range [][]dim.Axis{
		{dim.BatchAxis, dim.HeadAxis, dim.RowAxis, dim.ChannelAxis},
		{dim.BatchAxis, dim.HeadAxis, dim.ChannelAxis, dim.RowAxis},
		{dim.RowAxis, dim.BatchAxis, dim.HeadAxis, dim.ChannelAxis},
		{dim.BatchAxis, dim.RowAxis, dim.MergedAxis},
		{dim.BatchHeadAxis, dim.RowAxis, dim.ChannelAxis},
		{dim.BatchHeadAxis, dim.ChannelAxis, dim.RowAxis},
		{dim.RowAxis, dim.BatchHeadAxis, dim.ChannelAxis},
	} {
		layout := dim.Layout{Axes: axes, Heads: heads, Channels: channels, Rows: dim.LengthExtent}
		var dims []int64
		for _, a := range axes {
			dims = append(dims, size[a])
		}
		x := make([]float32, batch*heads*rows*channels)
		want := make([]float64, len(x))
		for i := range want {
			b, h, r, c := int64(i/(heads*rows*channels)), int64(i/(rows*channels)%heads), int64(i/channels%rows), int64(i%channels)
			x[layout.Index(dims, b, h, r, c)], want[i] = float32(i), float64(i)
		}
		b := &ir.Builder{Stem: "layer"}
		result := lower.Canonical(b, "x", layout, "key")
		m := onnx.New()
		m.RequireIR(8)
		m.RequireOpset("", 17)
		m.Graph.Name = "layout"
		m.Graph.AddInput(&onnx.ValueInfo{Name: "x", Type: onnx.Float})
		m.Graph.AddOutput(&onnx.ValueInfo{Name: "y"})
		m.Graph.Initializers = b.Constants
		m.Graph.Nodes = append(b.Nodes, onnx.NewNode("Identity", []string{result}, []string{"y"}))
		out, err := testmodel.Run(m, map[string]engine.Tensor{"x": engine.Float32s(x, dims...)}, "y")
		if err != nil {
			t.Errorf("%v: %v", axes, err)
			continue
		}
		if y := out["y"]; fmt.Sprint(y.Dims) != "[2 3 5 4]" || fmt.Sprint(y.Values()) != fmt.Sprint(want) {
			t.Errorf("%v: it has the shape %v and holds %v", axes, y.Dims, y.Values())
		}
	}
}
