package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
)

// An interrupt ends the command with a sentence and leaves no file.
func TestInterrupt(t *testing.T) {
	testruntime.Require(t)
	model, err := os.ReadFile("../../testdata/models/llama__optimum/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {"inspect"}} {
		dir := t.TempDir()
		path := filepath.Join(dir, "model.onnx")
		if err := os.WriteFile(path, model, 0o666); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		var stdout, stderr bytes.Buffer
		if code := run(ctx, append(args, path), &stdout, &stderr); code != exitInterrupted {
			t.Errorf("%v: exit code %d", args, code)
		}
		if stderr.String() != "rope-rewrite: interrupted; no model was written\n" || stdout.Len() > 0 {
			t.Errorf("%v: said %q and %q", args, stdout.String(), stderr.String())
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
			t.Errorf("%v: left %v, %v", args, files, err)
		}
	}
}

// stubborn is a command that ignores that its context is cancelled.
func stubborn() {
	os.Exit(interruptible(func(context.Context) int {
		fmt.Println("begun")
		select {}
	}))
}

// Work that takes its time is shown on one line, which is cleared.
func TestProgress(t *testing.T) {
	var screen bytes.Buffer
	p := showAfter(&screen, time.Hour)
	p.say("too early")
	if p.done(); screen.Len() > 0 {
		t.Errorf("quick work was shown: %q", screen.String())
	}

	p = showAfter(&screen, time.Hour)
	p.say("loading")
	p.due()
	p.say(strings.Repeat("x", 100))
	p.done()
	p.say("too late")
	want := "\r\x1b[Kloading …\r\x1b[K" + strings.Repeat("x", width-1) + "\r\x1b[K"
	if screen.String() != want {
		t.Errorf("screen %q, want %q", screen.String(), want)
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
		if got := wrap(c.text, c.indent); got != c.want {
			t.Errorf("wrap(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

// What could act on a terminal is written as JSON would escape it.
func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"plain äöü … 🙂\n":                "plain äöü … 🙂\n",
		"a\x1b[2Jb\rc\td\x00e\x7f":       `a\u001b[2Jb\u000dc\u0009d\u0000e\u007f`,
		"\u009b31m \u0085":               `\u009b31m \u0085`,
		"\u202a\u202e\u2066\u2069\u200f": `\u202a\u202e\u2066\u2069\u200f`,
		"line\u2028break\u2029":          `line\u2028break\u2029`,
		"\xff\xc3 \ufffd":                "\\xff\\xc3 \ufffd",
	} {
		if got := quote(text); got != want || quote(got) != got {
			t.Errorf("%q became %s, %s was expected", text, got, want)
		}
	}
}

// Long texts are cut in the middle; --json has all of them.
func TestShorten(t *testing.T) {
	long := "begin " + strings.Repeat("x", 200_000) + " end"
	got := strings.Join(strings.Fields(wrap(long, "  ")), " ")
	if n := len([]rune(got)); n > 800 || !strings.HasPrefix(got, "begin x") || !strings.HasSuffix(got, "x end") || !strings.Contains(got, "characters are left out; --json shows them") {
		t.Errorf("200,000 characters became %d: %s", n, got)
	}
	if text := strings.Repeat("x", 700); shorten(text) != text {
		t.Error("a text of a few lines was shortened")
	}
	var screen bytes.Buffer
	w := &writer{out: &screen}
	w.list(make([]string, 20_000))
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

func TestLayers(t *testing.T) {
	l, err := parseLayers("0-3, 7")
	if err != nil {
		t.Fatal(err)
	}
	for layer, want := range map[int]bool{0: true, 3: true, 4: false, 7: true, 8: false} {
		if l.has(layer) != want {
			t.Errorf("layer %d: %v", layer, !want)
		}
	}
	named := []selection{{}, {"--layers", l}}
	if checkLayers(named, 8) != nil || checkLayers(named, 7) == nil {
		t.Error("layer 7 is in a model of 8 layers and in none of 7")
	}
	for _, bad := range []string{"", "a", "1-", "-1", "3-2", "1,,2", "1-2-3", "99999999999999999999"} {
		if _, err := parseLayers(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
