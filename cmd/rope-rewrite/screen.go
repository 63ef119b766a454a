package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// width is what text is broken at: every terminal has so many columns.
const width = 80

// writer prints and remembers the first error.
type writer struct {
	out io.Writer
	err error
}

func (w *writer) line(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, format+"\n", args...)
	}
}

// wrap breaks a text at the width; lines after the first begin with indent.
// Spaces before the text and those that align its first words stay.
func wrap(text, indent string) string {
	var out strings.Builder
	column := 0
	filled := false // a word stands on this line
	for i, word := range strings.Split(strings.ReplaceAll(text, "\n", " "), " ") {
		n := len([]rune(word))
		switch {
		case i == 0:
		case n > 0 && column+1+n > width && filled:
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

// progress shows on a terminal what is being done, once the work has taken
// longer than a second. Its zero value shows nothing.
type progress struct {
	out io.Writer // nil where nothing is shown

	mu    sync.Mutex
	timer *time.Timer
	doing string
	shown bool
	ended bool
}

func newProgress(stderr io.Writer) *progress {
	if f, ok := stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return showAfter(stderr, time.Second)
	}
	return &progress{}
}

func showAfter(out io.Writer, delay time.Duration) *progress {
	p := &progress{out: out}
	p.timer = time.AfterFunc(delay, p.due)
	return p
}

// due is called when the work has taken long enough to be shown.
func (p *progress) due() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = true
	p.show()
}

func (p *progress) say(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing = what
	p.show()
}

// show writes over the line before; p.mu is held.
func (p *progress) show() {
	if p.shown && !p.ended && p.doing != "" {
		text := []rune(p.doing + " …")
		fmt.Fprintf(p.out, "\r\x1b[K%s", string(text[:min(len(text), width-1)]))
	}
}

// done clears the line; nothing is shown afterwards.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.shown && !p.ended {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	p.ended = true
}
