package lm

import (
	"strings"

	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

// writing makes text of tokens. It holds back text that may be the beginning of a stop text.
type writing struct {
	stream *tokenizer.Stream
	stop   []string
	held   string
}

// add returns what can be shown after a token, and whether a stop text ended the text.
func (w *writing) add(token int64) (text string, stopped bool) {
	return w.show(w.stream.Add(token), false)
}

// end returns what was held back.
func (w *writing) end() string {
	text, _ := w.show(w.stream.Flush(), true)
	return text
}

// show returns what of the held and the new text can be given out, and whether a stop text
// stands behind it.
func (w *writing) show(text string, all bool) (shown string, stopped bool) {
	w.held += text
	first := -1
	for _, s := range w.stop {
		if at := strings.Index(w.held, s); s != "" && at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	if first >= 0 {
		shown, w.held = w.held[:first], ""
		return shown, true
	}
	keep := 0
	for _, s := range w.stop {
		for n := min(len(s)-1, len(w.held)); n > keep && !all; n-- {
			if strings.HasSuffix(w.held, s[:n]) {
				keep = n
			}
		}
	}
	shown, w.held = w.held[:len(w.held)-keep], w.held[len(w.held)-keep:]
	return shown, false
}
