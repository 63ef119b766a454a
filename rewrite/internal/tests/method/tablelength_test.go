package method_test

import (
	"context"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// tableRows are the numbers of rows of a model's float tables of 8 pairs.
func tableRows(t *testing.T, path string) (rows []int64) {
	t.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, c := range m.Graph.Initializers {
		if len(c.Dims) == 2 && c.Dims[1] == 8 && c.Type == onnx.Float {
			rows = append(rows, c.Dims[0])
		}
	}
	return rows
}

// Without a context, tables become as long as the scaling reaches from the
// trained length: what is known of it, or where the tables end.
func TestTablesReachWhatIsScaled(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	const name = "llama__genai-fp32"
	if rows := tableRows(t, kit.Model(name)); !slices.Equal(rows, []int64{64, 64}) {
		t.Fatalf("the tables have %d rows; the cases are for 64", rows)
	}
	for _, c := range []struct {
		scaling, config string
		context         int64
		rows            int64
	}{
		{scaling: "yarn:factor=4", config: `{"max_position_embeddings": 64}`, rows: 256},
		{scaling: "linear:factor=3", rows: 192}, // the trained length is where the tables end
		{scaling: "linear:factor=2.3", rows: 148},
		{scaling: "ntk:alpha=4", rows: 256},
		{scaling: "linear:factor=2", config: `{"max_position_embeddings": 100}`, rows: 200},
		{scaling: "yarn:factor=2,original_max_position_embeddings=50", config: `{"max_position_embeddings": 64}`, rows: 100},
		{scaling: "yarn:factor=2,original_max_position_embeddings=16", rows: 64}, // which reach far enough
		{scaling: "yarn:factor=4", config: `{"max_position_embeddings": 64}`, context: 300, rows: 300},
		{scaling: "none", rows: 64},
	} {
		t.Run(c.scaling, func(t *testing.T) {
			original := kit.Beside(t, kit.Model(name), c.config)
			path, _ := kit.Patch(t, original, rewrite.Options{Target: rewrite.PlainONNX,
				Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, c.scaling)}, Context: rope.Context{Length: c.context}})
			if rows := tableRows(t, path); !slices.Equal(rows, []int64{c.rows, c.rows}) {
				t.Errorf("the tables have %d rows, %d were expected", rows, c.rows)
			}
		})
	}
}

// A scaling that the model carries already does not count from config.json.
func TestTablesOfScaledModel(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	config := `{"max_position_embeddings": 64, "rope_theta": 10000, "rope_scaling": {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 16}}`
	carried, _ := kit.Patch(t, kit.Beside(t, kit.Model("llama__genai-fp32"), ""), rewrite.Options{Target: rewrite.PlainONNX,
		Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=16")}})
	path, _ := kit.Patch(t, kit.Beside(t, carried, config), rewrite.Options{Target: rewrite.PlainONNX,
		Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=2,base=carried")}})
	if rows := tableRows(t, path); !slices.Equal(rows, []int64{128, 128}) {
		t.Errorf("the tables have %d rows, 128 were expected", rows)
	}
}

// A call beyond where the tables ended runs, and gives what the op gives.
func TestCallBeyondTables(t *testing.T) {
	testruntime.Require(t)
	opts := rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=4")}, Target: rewrite.PlainONNX}
	path, _ := kit.Patch(t, kit.Model("llama__genai-fp32"), opts)
	opts.Target = rewrite.Ops
	byOp, _ := kit.Patch(t, kit.Model("llama__genai-fp32"), opts)
	long := decoder.Sequence{Batch: 1, Length: 256}
	for i := range long.Length {
		long.IDs, long.Mask, long.Positions = append(long.IDs, 4+i*7%120), append(long.Mask, 1), append(long.Positions, i)
	}
	plain, ops := kit.Open(t, path), kit.Open(t, byOp)
	for _, chunks := range [][]int64{{256}, {63, 1, 1, 190, 1}} {
		logits, err := plain.Chunks(context.Background(), long, chunks...)
		if err != nil {
			t.Fatalf("calls of %d tokens: %v", chunks, err)
		}
		if off := kit.Largest(logits, kit.Chunked(t, ops, long, chunks)); !(off <= 1e-4) {
			t.Errorf("calls of %d tokens: off by %.2g from the op", chunks, off)
		}
	}
}
