package cli

import (
	"testing"
)

func TestLayers(t *testing.T) {
	l, err := ParseLayers("0-3, 7")
	if err != nil {
		t.Fatal(err)
	}
	for layer, want := range map[int]bool{0: true, 3: true, 4: false, 7: true, 8: false} {
		if l.Has(layer) != want {
			t.Errorf("layer %d: %v", layer, !want)
		}
	}
	named := []Selection{{}, {"--layers", l}}
	if CheckLayers(named, 8) != nil || CheckLayers(named, 7) == nil {
		t.Error("layer 7 is in a model of 8 layers and in none of 7")
	}
	for _, bad := range []string{"", "a", "1-", "-1", "3-2", "1,,2", "1-2-3", "99999999999999999999"} {
		if _, err := ParseLayers(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
