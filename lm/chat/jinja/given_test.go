package jinja

import (
	"strings"
	"testing"
)

// Go's values are Python's in a template, and a value that has none is refused.
func TestGiven(t *testing.T) {
	ordered := &Dict{}
	ordered.Set("z", 1)
	ordered.Set("a", []any{true, nil, 2.0, int64(-1), List{"x"}})
	ordered.Set("z", 3)
	want := `{'z': 3, 'a': [True, None, 2.0, -1, ['x']]} {'p': 'q', 'r': {}}`
	got, err := render("{{ o }} {{ m }}", map[string]any{"o": ordered, "m": map[string]any{"r": &Dict{}, "p": "q"}})
	if err != nil || got != want {
		t.Errorf("%s, %v; expected %s", got, err, want)
	}
	if n, ok := ordered.Get("z"); n != 3 || !ok || ordered.Len() != 2 {
		t.Errorf("z is %v, %v, of %d keys", n, ok, ordered.Len())
	}
	circle := List{nil}
	circle[0] = circle
	for want, v := range map[string]any{
		"a struct {}": struct{}{}, "a []string": []any{[]string{"x"}}, "not UTF-8": map[string]any{"\xff": 1}, "deep": circle, "a jinja.span": span{0, 1, 1},
	} {
		if got, err := render("{{ v }}", map[string]any{"v": v}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q, %v; an error that says %q was expected", got, err, want)
		}
	}
}
