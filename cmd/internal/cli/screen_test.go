package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Work that takes its time is shown on one line, which is cleared.
func TestProgress(t *testing.T) {
	// So is a word, such as a name that ONNX Runtime repeats.
	if got := Wrap("begin "+strings.Repeat("x", 10_000)+" end", ""); len(got) > 300 || !strings.Contains(got, "(9840\nmore characters)") {
		t.Errorf("a word of 10,000 characters became %s", got)
	}
	var screen bytes.Buffer
	p := showAfter(&screen, time.Hour)
	p.Say("too early")
	if p.Done(); screen.Len() > 0 {
		t.Errorf("quick work was shown: %q", screen.String())
	}

	p = showAfter(&screen, time.Hour)
	p.Say("loading")
	p.due()
	p.Say(strings.Repeat("x", 100))
	p.Done()
	p.Say("too late")
	want := "\r\x1b[Kloading …\r\x1b[K" + strings.Repeat("x", Width-1) + "\r\x1b[K"
	if screen.String() != want {
		t.Errorf("screen %q, want %q", screen.String(), want)
	}
}

// Where there is no terminal, stages of long work are lines, and quick work says nothing.
func TestStages(t *testing.T) {
	var out bytes.Buffer
	p := NewStages(&out)
	p.Say("too early")
	p.Say("running the original")
	if out.Len() > 0 {
		t.Errorf("quick work was shown: %q", out.String())
	}
	p.due()
	p.Say("running the patched model, about 12 s left")
	p.Done()
	p.Say("too late")
	if want := "running the original\nrunning the patched model, about 12 s left\n"; out.String() != want {
		t.Errorf("it says %q, want %q", out.String(), want)
	}
}

func TestWrap(t *testing.T) {
	long := strings.Repeat("x", 90)
	for _, c := range []struct{ text, indent, want string }{
		{"short", "  ", "short"},
		{"  a    b", "  ", "  a    b"},
		{strings.Repeat("abcd ", 16) + "e", "  ", strings.Repeat("abcd ", 15) + "abcd\n  e"},
		{strings.Repeat("abcd ", 15) + "abcde", "  ", strings.Repeat("abcd ", 15) + "abcde"},
		{"a " + long + " b", "    ", "a\n    " + long + "\n    b"},
		{strings.Repeat("äöüß ", 16) + "e", "", strings.Repeat("äöüß ", 15) + "äöüß\ne"},
	} {
		if got := Wrap(c.text, c.indent); got != c.want {
			t.Errorf("wrap(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

// What could act on a terminal is written as JSON would escape it.
func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"plain äöü … 🙂\n":                "plain äöü … 🙂\n",
		"a\x1b[2Jb\rc\td\x00e\x7f":       "a\\u001b[2Jb\\u000dc\td\\u0000e\\u007f",
		"\u009b31m \u0085":               `\u009b31m \u0085`,
		"\u202a\u202e\u2066\u2069\u200f": `\u202a\u202e\u2066\u2069\u200f`,
		"line\u2028break\u2029":          `line\u2028break\u2029`,
		"\xff\xc3 \ufffd":                "\\xff\\xc3 \ufffd",
	} {
		if got := Quote(text); got != want || Quote(got) != got {
			t.Errorf("%q became %s, %s was expected", text, got, want)
		}
	}
}

// Long texts are cut in the middle; --json has all of them.
func TestShorten(t *testing.T) {
	long := "begin " + strings.Repeat("x ", 100_000) + "end"
	got := strings.Join(strings.Fields(Wrap(long, "  ")), " ")
	if n := len([]rune(got)); n > 800 || !strings.HasPrefix(got, "begin x") || !strings.HasSuffix(got, "x end") || !strings.Contains(got, "more characters; --json shows them") {
		t.Errorf("200,000 characters became %d: %s", n, got)
	}
	if text := strings.Repeat("x ", 350); shorten(text) != text {
		t.Error("a text of a few lines was shortened")
	}
	var screen bytes.Buffer
	w := &Writer{out: &screen}
	w.List(make([]string, 20_000))
	if lines := strings.Count(screen.String(), "\n"); lines > 80 || !strings.Contains(screen.String(), "and 19936 more") {
		t.Errorf("20,000 lines became %d", lines)
	}
}

// Where in its sources ONNX Runtime found an error is not shown.
func TestPlacesInSources(t *testing.T) {
	for text, want := range map[string]string{
		"refused: Load model from m.onnx failed:/onnxruntime_src/onnxruntime/core/graph/model.cc:245 onnxruntime::Model::Model(onnx::ModelProto&&, const onnxruntime::ModelOptions&) Missing opset":     "refused: Load model from m.onnx failed: Missing opset",
		"Exception: /onnxruntime_src/include/onnxruntime/core/framework/op_kernel_context.h:42 const T* onnxruntime::OpKernelContext::Input(int) const [with T = onnxruntime::Tensor] Missing Input: x": "Exception: Missing Input: x",
		`D:\a\_work\1\s\onnxruntime\core\a.cc:12 f(void (*)(int)) no`: " no",
		"/models/a.cc/model.onnx: (in 3 parts)":                       "/models/a.cc/model.onnx: (in 3 parts)",
	} {
		if got := brief(text); got != want {
			t.Errorf("%q became %q, %q was expected", text, got, want)
		}
	}
}
