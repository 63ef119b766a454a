package cli

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// Width is what text is broken at: every terminal has so many columns.
const Width = 80

// Writer prints and remembers the first error.
type Writer struct {
	out io.Writer
	err error
}

// Text is what is printed.
func Text(print func(*Writer)) string {
	var b strings.Builder
	print(&Writer{out: &b})
	return b.String()
}

// Line prints a line.
func (w *Writer) Line(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, format+"\n", args...)
	}
}

// Text prints a text that is broken at the width; lines after the first begin with indent.
func (w *Writer) Text(indent, format string, args ...any) {
	w.Line("%s", Wrap(fmt.Sprintf(format, args...), indent))
}

// List prints lines. There may be as many as a model has nodes.
func (w *Writer) List(lines []string) {
	const most = 64
	for _, line := range lines[:min(len(lines), most)] {
		w.Line("%s", line)
	}
	if more := len(lines) - most; more > 0 {
		w.Line("  … and %d more of these; --json shows them.", more)
	}
}

// plain passes on what it is given, quoted.
type plain struct {
	out  io.Writer
	used bool
}

func (p *plain) Write(b []byte) (int, error) {
	p.used = true
	if _, err := io.WriteString(p.out, Quote(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Quote escapes what a terminal would act on, as short.Quote does.
func Quote(text string) string { return short.Quote(text) }

// shorten keeps the beginning and the end of a text, about eight lines. The end
// is longer, because it says what is wrong.
func shorten(text string) string {
	const first, last, allowed = 240, 360, 100 // allowed is the length of the sentence about the rest
	runes := []rune(text)
	left := len(runes) - first - last
	if left <= allowed {
		return text
	}
	return fmt.Sprintf("%s … (%d more characters; --json shows them) … %s", string(runes[:first]), left, string(runes[first+left:]))
}

// place is the place in ONNX Runtime's own sources that its errors name: file, line
// and the function's signature, which are of no use to users.
var place = regexp.MustCompile(`\s*(?:\b[A-Za-z]:)?[/\\][^\s:]*\.(?:cc|h):\d+ [^()]*\((?:[^()]|\([^()]*\))*\)(?: const)?(?: \[with [^\]]*\])?\s*`)

// brief shortens a text to what a reader of the screen needs.
func brief(text string) string { return shorten(short.Words(place.ReplaceAllString(text, " "))) }

// Wrap makes text from anywhere fit for the screen: quoted, brief, and broken at
// the width.
func Wrap(text, indent string) string { return broken(brief(Quote(text)), indent) }

// broken breaks a text at the width; lines after the first begin with indent.
// Spaces before the text and those that align its first words stay.
func broken(text, indent string) string {
	var out strings.Builder
	column := 0
	filled := false // a word stands on this line
	for i, word := range strings.Split(strings.ReplaceAll(text, "\n", " "), " ") {
		n := len([]rune(word))
		switch {
		case i == 0:
		case n > 0 && column+1+n > Width && filled:
			out.WriteString("\n" + indent)
			column = len(indent)
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += n
		filled = filled || n > 0
	}
	return out.String()
}

// Progress shows on a terminal what is being done, after the first second of
// work. Its zero value shows nothing.
type Progress struct {
	out   io.Writer // nil where nothing is shown
	lines bool      // each thing gets a line of its own, which stays

	mu    sync.Mutex
	timer *time.Timer
	doing string
	shown bool
	ended bool
}

// NewProgress shows work where stderr is a terminal.
func NewProgress(stderr io.Writer) *Progress {
	if p, ok := stderr.(*plain); ok {
		stderr = p.out // it moves the cursor
	}
	if f, ok := stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return showAfter(stderr, time.Second)
	}
	return &Progress{}
}

// NewStages is NewProgress for work that may take minutes, in a few stages: where stderr is no terminal,
// each stage gets a line, after the first seconds of work.
func NewStages(stderr io.Writer) *Progress {
	p := NewProgress(stderr)
	if p.out == nil {
		p = showAfter(stderr, stagesAfter)
		p.lines = true
	}
	return p
}

const stagesAfter = 5 * time.Second

func showAfter(out io.Writer, delay time.Duration) *Progress {
	p := &Progress{out: out}
	p.timer = time.AfterFunc(delay, p.due)
	return p
}

// due is called when the work has taken long enough to be shown.
func (p *Progress) due() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = true
	p.show()
}

// Say says what is being done now.
func (p *Progress) Say(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing = what
	p.show()
}

// show writes over the line before; p.mu is held.
func (p *Progress) show() {
	if !p.shown || p.ended || p.doing == "" {
		return
	}
	if p.lines {
		fmt.Fprintln(p.out, Wrap(p.doing, "  "))
	} else {
		text := []rune(strings.ReplaceAll(Quote(p.doing), "\n", " ") + " …")
		fmt.Fprintf(p.out, "\r\x1b[K%s", string(text[:min(len(text), Width-1)]))
	}
}

// Done clears the line; nothing is shown afterwards.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.shown && !p.ended && !p.lines {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	p.ended = true
}
