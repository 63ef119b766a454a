package short

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestName(t *testing.T) {
	for _, name := range []string{"", "node", strings.Repeat("x", Most), strings.Repeat("ö", Most), strings.Repeat("\xff", Most)} {
		if got := Name(name); got != name {
			t.Errorf("%q became %q", name, got)
		}
	}
	for _, name := range []string{strings.Repeat("x", Most+1), "b" + strings.Repeat("ö", 10_000) + "e", "b" + strings.Repeat("\xff", 10_000) + "e", strings.Repeat("a b", 1_000_000)} {
		got := Name(name)
		if n := utf8.RuneCountInString(got); n > Most || got[0] != name[0] || got[len(got)-1] != name[len(name)-1] || !strings.Contains(got, "more characters") {
			t.Errorf("%d characters became %d: %q", utf8.RuneCountInString(name), n, got)
		}
		if Name(got) != got {
			t.Errorf("%q is shortened twice", got)
		}
	}
	// The number is that of the characters left out.
	if got, want := Name(strings.Repeat("x", 10_160)), strings.Repeat("x", 100)+"…(10000 more characters)…"+strings.Repeat("x", 60); got != want {
		t.Errorf("%q, expected %q", got, want)
	}
}

func TestNames(t *testing.T) {
	many := make([]string, 100_000)
	for i := range many {
		many[i] = strings.Repeat("x", 1000)
	}
	if got := strings.Join(Names(many), " "); len(got) > 17*(Most+10) || !strings.HasSuffix(got, "and 99984 more") {
		t.Errorf("100,000 names became %d bytes: %s", len(got), got)
	}
	if got := Names([]string{"a", "b"}); len(got) != 2 || got[1] != "b" {
		t.Errorf("%q", got)
	}
}

func TestWords(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	got := Words("node " + long + "\n\tfails at " + long + ".")
	if strings.Contains(got, strings.Repeat("x", Most)) || !strings.HasPrefix(got, "node x") || !strings.Contains(got, "x\n\tfails at x") || !strings.HasSuffix(got, "x.") {
		t.Error(got)
	}
	if text := strings.Repeat("some words ", 1000); Words(text) != text {
		t.Error("a text of short words was changed")
	}
}

func TestError(t *testing.T) {
	cause := errors.New("refused: " + strings.Repeat("x", 10_000))
	if got := Error(cause); !errors.Is(got, cause) || len(got.Error()) > 300 {
		t.Errorf("%d bytes", len(got.Error()))
	}
	if err := errors.New("refused"); Error(err) != err || Error(nil) != nil {
		t.Error("an error without long words was wrapped")
	}
}
