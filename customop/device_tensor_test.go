package customop_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
)

// A cache that only ONNX Runtime can reach, usually in the CPU's memory, gives what
// a cache of Go slices gives when it is handed from call to call. (Sums over a
// cache in place may be in another order.)
func TestDeviceTensorAsCache(t *testing.T) {
	const capacity, steps = 12, 7
	p := problem(attention(4, 2, 16), 1, 1, 0)
	call := func(past int) feeds {
		return fixed{rows: fixedRows(p, past), capacity: capacity}.fill(uint64(past)).feeds(false)
	}
	first := call(0)
	s, err := newSession(t, fixed{rows: fixedRows(p, 0), capacity: capacity}.node(t), typesOf(first), 1)
	if err != nil {
		t.Fatal(err)
	}
	binding, err := s.session.CreateIoBinding()
	if err != nil {
		t.Fatal(err)
	}
	defer binding.Destroy()
	for _, name := range []string{"key", "value"} {
		cache, err := customop.NewDeviceTensor(testruntime.Require(t), testMemory(), ort.TensorElementDataTypeFloat, first["past_"+name].dims)
		if err != nil {
			t.Fatal(err)
		}
		defer cache.Destroy()
		if !slices.Equal(cache.GetShape(), first["past_"+name].dims) {
			t.Errorf("the tensor has shape %v", cache.GetShape())
		}
		if err := binding.BindInput("past_"+name, cache); err != nil {
			t.Fatal(err)
		}
		if err := binding.BindOutput("present_"+name, cache); err != nil {
			t.Fatal(err)
		}
	}
	outputs := map[string]*ort.Tensor[float32]{}
	for name, shape := range map[string]ort.Shape{"output": first["query"].dims, "log_sum_exp": first["query"].dims[:3]} {
		if outputs[name], err = ort.NewEmptyTensor[float32](shape); err != nil {
			t.Fatal(err)
		}
		defer outputs[name].Destroy()
		if err := binding.BindOutput(name, outputs[name]); err != nil {
			t.Fatal(err)
		}
	}
	var held map[string]tensor
	for past := range steps {
		in := call(past)
		if held != nil {
			in["past_key"], in["past_value"] = held["present_key"], held["present_value"]
		}
		if held, err = s.run(in); err != nil {
			t.Fatal(err)
		}
		for _, name := range s.inputs {
			if strings.HasPrefix(name, "past_") {
				continue
			}
			v, err := in[name].value()
			if err != nil {
				t.Fatal(err)
			}
			defer v.Destroy()
			if err := binding.BindInput(name, v); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.session.RunWithBinding(binding); err != nil {
			t.Fatal(err)
		}
		for name, got := range outputs {
			for i, x := range got.GetData() {
				if want := held[name].floats[i]; math.Abs(float64(x-want)) > 1e-6 {
					t.Fatalf("step %d: %s is %g at %d, with a cache in Go %g", past, name, x, i, want)
				}
			}
		}
	}
}

func TestDeviceTensorSaysWhatIsWrong(t *testing.T) {
	library := testruntime.Require(t)
	// The library knows its runtime once it is registered.
	if _, err := newSession(t, nodeOf(t, problem(attention(1, 1, 8), 1, 1, 0)), typesOf(feedsOf(filled(problem(attention(1, 1, 8), 1, 1, 0), 0), false)), 1); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		library, memory string
		element         ort.TensorElementDataType
		shape           ort.Shape
		want            string
	}{
		{library + ".absent", "Cpu", ort.TensorElementDataTypeFloat, ort.NewShape(1), "cannot be opened"},
		{library, "Cuda", ort.TensorElementDataTypeFloat, ort.NewShape(1), "librope_ops_cuda"},
		{library, "Cpu", ort.TensorElementDataTypeInt64, ort.NewShape(1), "float16"},
		{library, "Cpu", ort.TensorElementDataTypeFloat, nil, "at least one dimension"},
		{library, "Cpu", ort.TensorElementDataTypeFloat16, ort.NewShape(1<<40, 1<<40), "[1099511627776, 1099511627776]"},
		{library, "Cpu", ort.TensorElementDataTypeFloat16, ort.NewShape(1<<60, 1), "out of memory"},
	} {
		_, err := customop.NewDeviceTensor(test.library, customop.Memory{Name: test.memory}, test.element, test.shape)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v %v in %s: %v, want %q", test.element, test.shape, test.memory, err, test.want)
		}
	}
}
