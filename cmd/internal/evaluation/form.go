package evaluation

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
)

// Form is the text of a task's prompt. In braces stand {key}, what is to be found; {name}, what
// it is called by; {previous}, the name before; {names}, all names.
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
}

//go:embed forms/*.yaml
var forms embed.FS

// BuiltinForm is the text of a task's own form, as YAML: what a user may change and give back.
func BuiltinForm(task string) ([]byte, error) { return forms.ReadFile("forms/" + task + ".yaml") }

// ReadForm reads a form from a file.
func ReadForm(path string) (Form, error) {
	b, err := configfile.Read(path, configfile.Config)
	if err != nil {
		return Form{}, err
	}
	f, err := parseForm(b)
	if err != nil {
		return Form{}, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// parseForm reads a form and refuses one that nothing can be asked with.
func parseForm(b []byte) (f Form, err error) {
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
	}
	return f, nil
}

// filled puts values in the place of what stands in braces.
func filled(text string, values map[string]string) string {
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, "{"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
