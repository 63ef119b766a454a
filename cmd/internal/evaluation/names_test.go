package evaluation

import (
	"slices"
	"testing"
)

// Different names stay different, at any width, and those that fit stay as they are.
func TestShortNames(t *testing.T) {
	for _, c := range []struct{ names, want []string }{
		{[]string{"none", "scaling yarn:factor=4"}, []string{"none", "yarn:factor=4"}},
		{[]string{"positions self-extend:window=1k,group=4"}, []string{"self-extend:window…"}},
		{
			[]string{"positions dual-chunk:chunk_size=6k,local_size=1k", "positions dual-chunk:chunk_size=6k,local_size=2k"},
			[]string{"dual-chunk:chunk…1k", "dual-chunk:chunk…2k"},
		},
		{[]string{"scaling x", "positions x"}, []string{"scaling x", "positions x"}},
		{
			[]string{"a common beginning 1 a common end", "a common beginning 2 a common end", "b"},
			[]string{"a common beginnin…1", "a common beginnin…2", "b"},
		},
	} {
		if got := ShortNames(c.names, 19); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := fileNames([]string{"a:1", "a=1", "A-1", "b"}); !slices.Equal(got, []string{"a-1", "a-1-2", "A-1-3", "b"}) {
		t.Errorf("the files are %q", got)
	}
}
