package rope

import "testing"

// Lists have no method yet that takes them; their text is part of the format.
func TestLists(t *testing.T) {
	v, err := parseValue(Reals, "[1; 1.5;2e3]")
	if err != nil || !v.Equal(List(1, 1.5, 2000)) || v.String() != "[1;1.5;2000]" {
		t.Errorf("%v, %v", v, err)
	}
	for _, text := range []string{"", "1", "[1", "1]", "[]", "[1;]", "[1,2]", "[nan]", "[[1]]"} {
		if v, err := parseValue(Reals, text); err == nil {
			t.Errorf("%q: read as %v", text, v)
		}
	}
	if v, err := jsonValue(Reals, []byte("[1, 1.5,\n2e3]")); err != nil || !v.Equal(List(1, 1.5, 2000)) {
		t.Errorf("%v, %v", v, err)
	}
	for _, text := range []string{"1", "[]", "[true]", `["1"]`, "[null]", "[[1]]", `"[1]"`} {
		if v, err := jsonValue(Reals, []byte(text)); err == nil {
			t.Errorf("%s: read as %v", text, v)
		}
	}
	p := Param{Name: "short_factor", Kind: Reals, Rule: atLeastOne}
	if err := p.check(List(1, 0.5)); err == nil {
		t.Error("the rule does not reach the list's numbers")
	}
}

// The table is sound: names are unique, every key and formula is described, and
// defaults obey their own rules.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for m := range Methods() {
		if seen[m.title()] {
			t.Errorf("%s is listed twice", m.title())
		}
		seen[m.title()] = true
		if m.Doc == "" || m.Formula == "" || m.Source == "" || m.apply == nil {
			t.Errorf("%s lacks a description", m.title())
		}
		keys := map[string]bool{}
		for _, p := range m.Params {
			if keys[p.Name] || p.Doc == "" || p.Kind == Absent {
				t.Errorf("%s: parameter %s is listed twice or not described", m.title(), p.Name)
			}
			keys[p.Name] = true
			if p.Default.Kind() != Absent {
				if err := p.check(p.Default); err != nil {
					t.Errorf("%s: default of %v", m.title(), err)
				}
			}
		}
		if found, err := Lookup(m.Axis, m.Name); err != nil || found.Name != m.Name {
			t.Errorf("%s is not found: %v", m.title(), err)
		}
	}
}
