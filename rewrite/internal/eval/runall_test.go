package eval

import (
	"context"
	"errors"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
)

// fake gives the first byte that it is fed, and fails where that is told.
type fake struct {
	engine.Session
	fails byte
	asked [][]byte // by message
}

var errFake = errors.New("told to fail")

func (f *fake) RunAll(_ context.Context, calls []engine.Call) (out []map[string]engine.Tensor, _ error) {
	var message []byte
	defer func() { f.asked = append(f.asked, message) }()
	for _, c := range calls {
		x := c.Feeds["x"].Data[0]
		message = append(message, x)
		if x == f.fails {
			return out, errFake
		}
		out = append(out, map[string]engine.Tensor{"y": {Data: []byte{x}}})
	}
	return out, nil
}

// Runs are sent together up to some megabytes, and give what comes before the first that fails.
func TestRunAll(t *testing.T) {
	run := func(f *fake, sizes ...int) ([]map[string]engine.Tensor, error) {
		l := &Loaded{Session: f, Piece: &Piece{}, Table: &ShapeTable{}}
		var runs []Run
		for i, n := range sizes {
			data := make([]byte, n)
			data[0] = byte(i)
			runs = append(runs, Run{Loaded: l, Feeds: map[string]engine.Tensor{"x": {Data: data}}})
		}
		return RunAll(t.Context(), runs)
	}
	const large = togetherBytes - 100
	for _, c := range []struct {
		sizes    []int
		fails    byte
		results  int
		messages int
	}{
		{[]int{10, 10, 10}, 99, 3, 1},
		{[]int{10, large, 10, large, 10}, 99, 5, 2},
		{[]int{large, large, 2 * large}, 99, 3, 3},
		{[]int{10, large, 10, large, 10}, 1, 1, 1},
		{[]int{10, large, 10, large, 10}, 4, 4, 2},
		{nil, 99, 0, 0},
	} {
		f := &fake{fails: c.fails}
		results, err := run(f, c.sizes...)
		if len(results) != c.results || errors.Is(err, errFake) != (c.fails < 99) || len(f.asked) != c.messages {
			t.Errorf("%v, %d fails: %d results, %v, messages %v", c.sizes, c.fails, len(results), err, f.asked)
		}
		for i, r := range results {
			if r["y"].Data[0] != byte(i) {
				t.Errorf("%v: result %d is that of %d", c.sizes, i, r["y"].Data[0])
			}
		}
	}
}
