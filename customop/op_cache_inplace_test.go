package customop_test

import (
	"math"
	"slices"
	"sync"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// runShared runs the session with the memory of two tensors as the outputs
// present_key and present_value; the inputs may be parts of the same memory.
func runShared(t tester, s opSession, in feeds, key, value tensor) (map[string]tensor, error) {
	t.Helper()
	var made []ort.Value
	defer func() {
		for _, v := range made {
			v.Destroy()
		}
	}()
	make1 := func(x tensor) ort.Value {
		v, err := x.value()
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, v)
		return v
	}
	var inputs []ort.Value
	for _, name := range s.inputs {
		inputs = append(inputs, make1(in[name]))
	}
	outputs := []ort.Value{nil, make1(key), make1(value), nil}
	if err := s.session.Run(inputs, outputs); err != nil {
		return nil, err
	}
	made = append(made, outputs[0], outputs[3])
	number := func(i int) tensor {
		x := outputs[i].(*ort.Tensor[float32])
		return floats(slices.Clone(x.GetData()), slices.Clone(x.GetShape())...)
	}
	return map[string]tensor{"output": number(0), "log_sum_exp": number(3), "present_key": key, "present_value": value}, nil
}

// tokens are the first `past` rows of one batch row of a buffer.
func tokens(buffer tensor, b, past int) []float64 {
	x := buffer.row(b)
	x.floats = rows(x.floats, int(x.dims[2]), int(x.dims[3]), 0, past)
	return float64s(x)
}

// One buffer for past and present: tokens are appended where they stand, call
// after call, and nothing else is written, neither by the kernel nor by the fallback.
func TestFixedCacheInPlace(t *testing.T) {
	hostOnly(t, copied)
	for name, a := range map[string]rope.Attention{
		"plain": attention(4, 2, 32),
		"bands": with(attention(4, 2, 32), func(a *rope.Attention) { a.Bands = stringBands(9, 4) }),
		"raw":   with(attention(4, 2, 32), func(a *rope.Attention) { a.Cache = rope.Raw }),
	} {
		for way, open := range ways(false) {
			t.Run(name+", by "+way, func(t *testing.T) { inPlace(t, a, open) })
		}
	}
}

func inPlace(t *testing.T, a rope.Attention, open opener) {
	f := fixed{rows: fixedRows(problem(a, 1, 1, 0), 30, 0, 7), capacity: 60}.fill(0)
	first := f.feeds(false)
	s, err := open(t, []*onnx.Node{f.node(t)}, typesOf(first), 2)
	if err != nil {
		t.Fatal(err)
	}
	key, value := first["past_key"], first["past_value"]
	for step, length := range []int{5, 1, 1, 20, 1, 2} { // full at the end
		for b, p := range f.rows {
			p.Length = length
			past, pastValue := tokens(key, b, p.Past), tokens(value, b, p.Past)
			f.rows[b] = filled(p, uint64(10*step+b))
			f.rows[b].PastKey, f.rows[b].PastValue = past, pastValue
		}
		in := f.feeds(false)
		in["past_key"], in["past_value"] = key, value
		before := [2][]float32{slices.Clone(key.floats), slices.Clone(value.floats)}
		got, err := runShared(t, s, in, key, value)
		if err != nil {
			t.Fatal(err)
		}
		var j judge
		f.judgeRows(t, &j, false, got, f.solved(t), isNaN)
		j.verdict(t)
		for b := range f.rows {
			for i, was := range before {
				now := []tensor{key, value}[i]
				old := tokens(floats(was, now.dims...), b, f.rows[b].Past)
				if !slices.Equal(old, tokens(now, b, f.rows[b].Past)) {
					t.Errorf("step %d: the cached tokens of row %d have changed", step, b)
				}
			}
			f.rows[b].Past += length
		}
	}
}

// With total_length the same memory may serve a past of few rows and a present
// of more: heads move up.
func TestFixedCacheGrowsInItsMemory(t *testing.T) {
	for way, open := range ways(false) {
		t.Run("by "+way, func(t *testing.T) { growsInPlace(t, open, way == byLibrary) })
	}
}

func growsInPlace(t *testing.T, open opener, zeroed bool) {
	f := fixed{rows: fixedRows(problem(attention(4, 2, 32), 1, 3, 0), 30, 0, 7), capacity: 31, total: 50}.fill(1)
	in := f.feeds(false)
	s, err := open(t, []*onnx.Node{f.node(t)}, typesOf(in), 2)
	if err != nil {
		t.Fatal(err)
	}
	present := map[string]tensor{}
	for _, name := range []string{"key", "value"} {
		past := in["past_"+name]
		dims := slices.Clone(past.dims)
		dims[2] = 50
		memory := make([]float32, len(past.floats)/31*50)
		copy(memory, past.floats)
		present[name] = floats(memory, dims...)
		in["past_"+name] = floats(memory[:len(past.floats)], past.dims...)
	}
	got, err := runShared(t, s, in, present["key"], present["value"])
	if err != nil {
		t.Fatal(err)
	}
	var j judge
	f.judgeRows(t, &j, false, got, f.solved(t), func(v float32) bool { return v == 0 || !zeroed })
	j.verdict(t)
}

// Memory that is shared in any other way would be overwritten while it is read.
func TestFixedCacheRefusesOverlap(t *testing.T) {
	hostOnly(t, copied)
	f := fixed{rows: fixedRows(problem(attention(4, 2, 32), 1, 3, 0), 30), capacity: 40}.fill(1)
	in := f.feeds(false)
	s, err := newSession(t, f.node(t), typesOf(in), 2)
	if err != nil {
		t.Fatal(err)
	}
	key, value := in["past_key"], in["past_value"]
	_, err = runShared(t, s, in, value, key)
	refused(t, err, "present_value", "past_key", "overlaps")
	memory := make([]float32, len(key.floats)+8)
	in["past_key"] = floats(memory[:len(key.floats)], key.dims...)
	_, err = runShared(t, s, in, floats(memory[8:], key.dims...), value)
	refused(t, err, "present_key", "past_key", "overlaps")
}

// Each is refused before anything is written: the shared buffer is unchanged.
func TestFixedCacheRefuses(t *testing.T) {
	p := holes(problem(attention(4, 2, 8), 1, 3, 0), 1)
	p.KeyMask = nil
	f := fixed{rows: fixedRows(p, 30, 9), capacity: 33, total: 20}.fill(1)
	for b := range f.rows {
		f.rows[b] = holes(f.rows[b], 1)
	}
	good := f.feeds(false)
	s, err := newSession(t, f.node(t), typesOf(good), 1)
	if err != nil {
		t.Fatal(err)
	}
	lengths := func(a, b int64) tensor { return integers32([]int64{a, b}, 2) }
	for name, c := range map[string]struct {
		input string
		bad   tensor
		want  []string
	}{
		"one token too many": {"cache_length", lengths(30, 31), []string{"cache_length", "31", "row 1", "3 new tokens", "makes 34", "33 tokens"}},
		"more than capacity": {"cache_length", lengths(34, 0), []string{"cache_length", "34", "row 0", "past_key [2, 2, 33, 8]", "33 tokens"}},
		"negative":           {"cache_length", lengths(0, -1), []string{"cache_length", "-1", "row 1", "negative"}},
		"immense":            {"cache_length", lengths(0, math.MaxInt32), []string{"cache_length", "2147483647", "row 1"}},
		"one for two rows":   {"cache_length", integers32([]int64{5}, 1), []string{"cache_length [1]", "[2]"}},
		"rank 2":             {"cache_length", integers32([]int64{5, 5}, 2, 1), []string{"cache_length [2, 1]", "[2]"}},
		"two totals":         {"total_length", integers32([]int64{5, 5}, 2), []string{"total_length [2]", "one element"}},
		"negative total":     {"total_length", integers32([]int64{-5}, 1), []string{"total_length", "-5", "negative"}},
		"mask too narrow":    {"attention_mask", integers(make([]int64, 64), 2, 32), []string{"attention_mask [2, 32]", "[2, 33]", "cache_length 30", "length 3"}},
		"mask batch":         {"attention_mask", integers(make([]int64, 99), 3, 33), []string{"attention_mask [3, 33]"}},
		"past value rows":    {"past_value", floats(make([]float32, 2*2*32*8), 2, 2, 32, 8), []string{"past_value [2, 2, 32, 8]", "[2, 2, 33, 8]"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := f.feeds(false)
			key, value := in["past_key"], in["past_value"]
			before := slices.Clone(key.floats)
			in[c.input] = c.bad
			_, err := runShared(t, s, in, key, value)
			refused(t, err, c.want...)
			for i, v := range key.floats {
				if v != before[i] && !(isNaN(v) && isNaN(before[i])) {
					t.Fatal("the cache has been written")
				}
			}
		})
	}
}

// Runs at the same time, each with its own buffer in place.
func TestFixedCacheConcurrentRuns(t *testing.T) {
	hostOnly(t, copied)
	f := fixed{rows: fixedRows(problem(attention(4, 2, 64), 1, 1, 0), 700, 20), capacity: 720}.fill(1)
	s, err := newSession(t, f.node(t), typesOf(f.feeds(false)), 2)
	if err != nil {
		t.Fatal(err)
	}
	in := f.feeds(false)
	want, err := runShared(t, s, in, in["past_key"], in["past_value"])
	if err != nil {
		t.Fatal(err)
	}
	var j judge
	f.judgeRows(t, &j, false, want, f.solved(t), isNaN)
	j.verdict(t)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 20 {
				in := f.feeds(false)
				got, err := runShared(t, s, in, in["past_key"], in["past_value"])
				if err != nil {
					t.Error(err)
					return
				}
				if !slices.Equal(got["output"].floats, want["output"].floats) {
					t.Error("the output is not the same")
				}
			}
		})
	}
	wait.Wait()
}
