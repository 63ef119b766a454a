// Package short bounds what messages repeat of a model, a file or an argument. Names there have no bound: a tensor's may have
// millions of characters. What has at most Most characters stays as it is; of the rest its beginning and its end are kept, with the number
// of characters between them, so that two long names that differ in their middle still look alike only where they are of one length.
// Fields of results (a report's "node", for instance) have names as a whole.
package short

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Most is how many characters of a name a message repeats.
const Most = 200

// Name returns a name, or its beginning and its end.
func Name[T ~string](name T) T {
	if len(name) <= Most { // bytes: most names end here
		return name
	}
	n := utf8.RuneCountInString(string(name))
	if n <= Most {
		return name
	}
	const first, last = 100, 60 // what is kept; the words between them fit into Most, too
	begin, end := 0, len(name)
	for range first {
		_, size := utf8.DecodeRuneInString(string(name[begin:]))
		begin += size
	}
	for range last {
		_, size := utf8.DecodeLastRuneInString(string(name[:end]))
		end -= size
	}
	return T(fmt.Sprintf("%s…(%d more characters)…%s", name[:begin], n-first-last, name[end:]))
}

// Names returns names, each as Name does, of many the first sixteen and the number of the others.
func Names[T ~string](names []T) []T {
	const most = 16
	out := make([]T, 0, min(len(names), most+1))
	for _, name := range names[:min(len(names), most)] {
		out = append(out, Name(name))
	}
	if more := len(names) - most; more > 0 {
		out = append(out, T(fmt.Sprintf("and %d more", more)))
	}
	return out
}

// Words returns a text in which each run of characters without a blank is bounded as Name does it. It is for texts of others, such as
// ONNX Runtime's errors, which repeat names whole.
func Words(text string) string {
	if len(text) <= Most {
		return text
	}
	out := make([]byte, 0, len(text))
	begin := 0
	for i, r := range text {
		if unicode.IsSpace(r) {
			out = append(out, Name(text[begin:i])...)
			out = utf8.AppendRune(out, r)
			begin = i + utf8.RuneLen(r)
		}
	}
	return string(append(out, Name(text[begin:])...))
}

// Error bounds the words of an error that others made. Errors without a long word stay as they are.
func Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if bounded := Words(text); bounded != text {
		return &shortened{bounded, err}
	}
	return err
}

type shortened struct {
	text string
	err  error
}

func (s *shortened) Error() string { return s.text }
func (s *shortened) Unwrap() error { return s.err }
