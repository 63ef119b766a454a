package task

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
)

// Form is the text of a task's prompt. In braces stand {key}, what is to be found; {name}, what
// it is called by; {previous}, the name before; {names}, all names; {count}, how many are to be found;
// {begin}, a sentence up to the answer of a question.
type Form struct {
	System   string `yaml:"system"`   // of the conversation; empty gives none
	Before   string `yaml:"before"`   // what stands before the haystack
	Haystack string `yaml:"haystack"` // a text, repeated as often as it takes
	Needle   string `yaml:"needle"`   // what is hidden in it
	Next     string `yaml:"next"`     // further needles; empty is Needle again
	Needles  int    `yaml:"needles"`  // how many are hidden; 0 is one
	Need     int    `yaml:"need"`     // how many must be found; 0 is all
	Question string `yaml:"question"` // what stands behind the haystack
	Answer   string `yaml:"answer"`   // what the model's answer begins with
	Tokens   int    `yaml:"tokens"`   // the most tokens of an answer

	// What RULER's tasks have besides. A journal leaves out what a form does not have.
	Join    string  `yaml:"join" json:",omitempty"`    // what stands between the pieces of the text; empty is a blank
	Between string  `yaml:"between" json:",omitempty"` // what stands between the text and the question; empty is an empty line
	Share   int     `yaml:"share" json:",omitempty"`   // samples that ask about one text; 0 is one
	Values  int     `yaml:"values" json:",omitempty"`  // of each key; 0 is one
	Queries int     `yaml:"queries" json:",omitempty"` // keys that a question asks for; 0 is one
	Often   int     `yaml:"often" json:",omitempty"`   // how often a common word comes
	Seldom  int     `yaml:"seldom" json:",omitempty"`  // how often any other word comes
	Alpha   float64 `yaml:"alpha" json:",omitempty"`   // the exponent by which words get rarer
	Example bool    `yaml:"example" json:",omitempty"` // an answered question stands before
}

//go:embed forms
var forms embed.FS

// BuiltinForm is the text of a task's own form, as YAML: what a user may change and give back.
func BuiltinForm(name string) ([]byte, error) { return forms.ReadFile("forms/" + name + ".yaml") }

// RulerForm is the form that the authors of RULER have for one of its tasks.
func RulerForm(name string) ([]byte, error) {
	b, err := forms.ReadFile("forms/ruler/" + name + ".yaml")
	if errors.Is(err, fs.ErrNotExist) {
		return BuiltinForm(name) // ours is the same
	}
	return b, err
}

// ReadForm reads a form from a file.
func ReadForm(path string) (Form, error) {
	b, err := configfile.Read(path, configfile.Config)
	if err != nil {
		return Form{}, err
	}
	f, err := ParseForm(b)
	if err != nil {
		return Form{}, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// most is as large as a number of a form may be: texts are made in memory.
const most = 10_000

// ParseForm reads a form and refuses one that nothing can be asked with.
func ParseForm(b []byte) (f Form, err error) {
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		return f, fmt.Errorf("the prompt file cannot be read: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	f.Needles = max(f.Needles, 1)
	if f.Need == 0 {
		f.Need = f.Needles
	}
	if f.Next == "" {
		f.Next = f.Needle
	}
	switch {
	case !strings.Contains(f.Needle, "{key}"):
		return f, errors.New("needle: expected a text with {key}")
	case f.Question == "":
		return f, errors.New("question: expected a text")
	case f.Tokens < 1:
		return f, errors.New("tokens: expected a number above 0: the longest answer in tokens")
	case f.Need < 1 || f.Need > f.Needles:
		return f, fmt.Errorf("need: %d of %d needles cannot be found", f.Need, f.Needles)
	case min(f.Share, f.Values, f.Queries, f.Often, f.Seldom) < 0 || f.Alpha < 0:
		return f, errors.New("share, values, queries, often, seldom and alpha: expected no number below 0")
	case max(f.Needles, f.Share, f.Values, f.Queries, f.Often, f.Seldom) > most:
		return f, fmt.Errorf("needles, share, values, queries, often and seldom: expected no number above %d", most)
	}
	return f, nil
}

// needle is the text of needle i, which the first one has for itself.
func (f Form) needle(i int) string {
	if i == 0 {
		return f.Needle
	}
	return f.Next
}

// prompt is the text with what stands before and behind it.
func (f Form) prompt(haystack string, values map[string]string) Prompt {
	between := f.Between
	if between == "" {
		between = "\n\n"
	}
	return Prompt{System: f.System, Text: f.Before + haystack + between + filled(f.Question, values), Answer: filled(f.Answer, values)}
}

// filled puts values in the place of what stands in braces, if there is a value of that name.
func filled(text string, values map[string]string) string {
	var b strings.Builder
	for {
		before, rest, open := strings.Cut(text, "{")
		b.WriteString(before)
		if !open {
			return b.String()
		}
		name, behind, closed := strings.Cut(rest, "}")
		value, known := values[name]
		if !closed || !known {
			b.WriteByte('{')
			text = rest
			continue
		}
		b.WriteString(value)
		text = behind
	}
}
