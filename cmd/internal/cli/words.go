package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// wordFlag is a flag, other than those of methods, that takes one of a few words, some with more
// after a colon.
type wordFlag struct {
	flag, all string // all is what is expected
	words     []word
}

// word is one of them. set reads the rest of the value, which begins with a colon or is ""; only a word with
// keys has such a rest. An errWrong becomes the sentence in wrong.
type word struct {
	name  string
	keys  bool
	set   func(o *rewrite.Options, rest string) error
	wrong string // "" says that the word takes no keys
}

var errWrong = errors.New("it is written in another way")

// wordFlags are all of them. A new flag of words is a line here.
func wordFlags() []wordFlag {
	return []wordFlag{
		{"documents", "input, input:NAME or separator:TOKEN", []word{{"input", true, setDocuments, "expected input, input:NAME or separator:TOKEN"},
			{"separator", true, setSeparator, "expected separator:TOKEN or separator:TOKEN,ends; TOKEN is the id of the token that begins or ends each document"}}},
		{"kv", "growing, growing:type=T or fixed:capacity=N", []word{{"growing", true, setGrowing, ""}, {"fixed", true, setFixed, ""}}},
		{"logits", "all, last or last:input=NAME", []word{{name: "all"}, {"last", true, setPlaces, "expected last or last:input=NAME"}}},
		{"base", "original or carried", []word{{name: "original"}, {name: "carried", set: func(o *rewrite.Options, _ string) error { o.Earlier.Carried = true; return nil }}}},
		{"cache", "rotated or raw", []word{{name: "rotated"}, {name: "raw", set: func(o *rewrite.Options, _ string) error { o.Cache.Raw = true; return nil }}}},
		{"angles", "exact or original", []word{{name: "exact", set: setAngles("exact")}, {name: "original", set: setAngles("original")}}},
		{"precision", "exact or fast", []word{{name: "exact", set: setPrecision("exact")}, {name: "fast", set: setPrecision("fast")}}},
		{"target", strings.Join(wordFlag{words: targets()}.names(), " or "), targets()},
		{"fallback", "functions or none", []word{{name: "functions"}, {name: "none", set: func(o *rewrite.Options, _ string) error { o.Output.NoFallback = true; return nil }}}},
		{"weights", "copy or link", []word{{name: "copy"}, {name: "link"}}},
	}
}

// targets are those of package rewrite, which reads what follows the colon.
func targets() (list []word) {
	for _, t := range rewrite.Targets() {
		list = append(list, word{name: string(t), keys: true, set: func(o *rewrite.Options, rest string) error {
			o.Target = t + rewrite.Target(rest)
			return nil
		}})
	}
	return list
}

func setDocuments(o *rewrite.Options, rest string) error {
	if rest == ":" {
		return errWrong
	}
	o.Documents.Input = cmp.Or(strings.TrimPrefix(rest, ":"), rewrite.DocumentsInput)
	return nil
}

func setSeparator(o *rewrite.Options, rest string) error {
	token, ends := strings.CutSuffix(strings.TrimPrefix(rest, ":"), ",ends")
	id, err := strconv.ParseInt(token, 10, 64)
	if err != nil || id < 0 {
		return errWrong
	}
	o.Documents.Separator = &rewrite.Separator{Token: id, Ends: ends}
	return nil
}

func setPlaces(o *rewrite.Options, rest string) error {
	name, named := strings.CutPrefix(rest, ":input=")
	if rest != "" && (!named || name == "") {
		return errWrong
	}
	o.LogitsPlaces = cmp.Or(name, rewrite.LogitsPlacesInput)
	return nil
}

func setPrecision(name string) func(*rewrite.Options, string) error {
	return func(o *rewrite.Options, _ string) error { o.Numerics.Precision = name; return nil }
}

func setAngles(name string) func(*rewrite.Options, string) error {
	return func(o *rewrite.Options, _ string) error { o.Numerics.Angles = name; return nil }
}

// setGrowing takes the type of a cache that grows.
func setGrowing(o *rewrite.Options, rest string) error {
	if rest == "" {
		return nil
	}
	key, value, _ := strings.Cut(strings.TrimPrefix(rest, ":"), "=")
	if key != "type" {
		return errors.New("growing takes the key type alone, as growing:type=int8; for a cache of N tokens write fixed:capacity=N")
	}
	return setCacheType(o, value)
}

func setCacheType(o *rewrite.Options, value string) error {
	types := []string{"float16", "bfloat16", "int8"}
	if !slices.Contains(types, value) {
		return fmt.Errorf("type=%s: expected float16, bfloat16 or int8%s", value, suggest.Hint(value, types))
	}
	o.Cache.Type = value
	return nil
}

func setFixed(o *rewrite.Options, rest string) error {
	given := map[string]bool{}
	for item := range strings.SplitSeq(strings.TrimPrefix(rest, ":"), ",") {
		key, value, valued := strings.Cut(item, "=")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		_, err := rope.ParseTokens(key)
		switch {
		case rest == "":
		case err == nil && !valued:
			return fmt.Errorf("%q is not key=value; write fixed:capacity=%s", short.Name(key), key)
		case given[key]:
			return fmt.Errorf("%s is given twice", key)
		case key == "capacity":
			if o.Cache.Capacity, err = rope.ParseTokens(value); err != nil || o.Cache.Capacity < 1 || o.Cache.Capacity > math.MaxInt32 {
				return fmt.Errorf("capacity=%q: expected a number of tokens from 1 to %d, for example 8192 or 8k", short.Name(value), math.MaxInt32)
			}
		case key == "input" && value == "":
			return errors.New("input=: expected the name of the new input for the cache's lengths")
		case key == "input":
			o.Cache.LengthInput = value
		case key == "ring" && (value == "true" || value == "false"):
			o.Cache.Ring = value == "true"
		case key == "ring":
			return fmt.Errorf("ring=%s: expected true or false", value)
		case key == "type":
			if err := setCacheType(o, value); err != nil {
				return err
			}
		default:
			return fmt.Errorf("unknown key %q%s; keys: capacity, input, ring, type", short.Name(key), suggest.Hint(key, []string{"capacity", "input", "ring", "type"}))
		}
		given[key] = true
	}
	if o.Cache.Capacity == 0 {
		return errors.New("fixed needs a number of tokens; write fixed:capacity=8k")
	}
	return nil
}

// find is the word of a flag with a name, nil where it has none.
func (f wordFlag) find(name string) *word {
	for i := range f.words {
		if suggest.Same(f.words[i].name, name) {
			return &f.words[i]
		}
	}
	return nil
}

func (f wordFlag) names() (list []string) {
	for _, w := range f.words {
		list = append(list, w.name)
	}
	return list
}

// otherFlag says, as an error, to which other flag a value belongs; nil if to none.
func otherFlag(flag, text string) error {
	name, _, _ := strings.Cut(text, ":")
	name = strings.TrimSpace(name)
	for m := range rope.Methods() {
		if m.Axis.String() == flag && suggest.Same(m.Name, name) {
			return nil // words of other flags may have the same name
		}
	}
	for _, f := range wordFlags() {
		if f.flag != flag && f.find(name) != nil {
			return fmt.Errorf("%s is a value of --%s; write --%s %s", name, f.flag, f.flag, text)
		}
	}
	for m := range rope.Methods() {
		if m.Axis.String() != flag && suggest.Same(m.Name, name) {
			return fmt.Errorf("%s is a method of --%v; write --%v %s", m.Name, m.Axis, m.Axis, text)
		}
	}
	return nil
}

// choose returns which of a flag's words text begins with, and the rest of the text.
func choose(flag, text string) (w *word, rest string, err error) {
	before, _, _ := strings.Cut(text, ":")
	name, rest := strings.TrimSpace(before), strings.TrimPrefix(text, before)
	flags := wordFlags()
	f := flags[slices.IndexFunc(flags, func(f wordFlag) bool { return f.flag == flag })]
	if w = f.find(name); w != nil {
		if rest != "" && !w.keys {
			return nil, "", fmt.Errorf("%q: %s", short.Name(text), cmp.Or(w.wrong, w.name+" takes no keys"))
		}
		return w, rest, nil
	}
	if err := otherFlag(flag, text); err != nil {
		return nil, "", err
	}
	return nil, "", fmt.Errorf("%q: expected %s%s", short.Name(text), f.all, suggest.Hint(name, f.names()))
}

// SetWord reads the value of a flag that takes words into options.
func SetWord(o *rewrite.Options, flag, text string) error {
	if strings.ContainsAny(text, "\n\r") {
		return fmt.Errorf("%.60q has a line end; write the value on one line", text)
	}
	w, rest, err := choose(flag, text)
	switch {
	case err != nil:
		return err
	case w.set != nil:
		err = w.set(o, rest)
	}
	if errors.Is(err, errWrong) {
		err = fmt.Errorf("%q: %s", short.Name(text), w.wrong)
	}
	return err
}

// Complete gives a command's flags the values that a shell offers for them: the methods and their keys, and the
// words of flags that take one of a few.
func Complete(cmd *cobra.Command) {
	offer := func(name string, values func(typed string) []string) {
		if cmd.Flags().Lookup(name) == nil {
			return
		}
		// The only error is that the flag is not there.
		_ = cmd.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return values(typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		})
	}
	for _, axis := range []rope.Axis{rope.ScalingAxis, rope.PositionsAxis, rope.MaskAxis} {
		offer(axis.String(), func(typed string) []string { return CompleteSpec(axis, typed) })
	}
	for _, f := range wordFlags() {
		offer(f.flag, func(string) (list []string) {
			for _, w := range f.words {
				list = append(list, w.name)
			}
			return list
		})
	}
}

// CompleteSpec offers what a method's text may go on with: names, each with what it does, or behind a name the keys
// that were not given.
func CompleteSpec(axis rope.Axis, typed string) (list []string) {
	name, keys, named := strings.Cut(typed, ":")
	for m := range rope.Methods() {
		switch {
		case m.Axis != axis:
		case !named:
			text := m.Name
			if len(m.Params) > 0 {
				text += ":"
			}
			list = append(list, text+"\t"+briefly(m.Doc))
		case m.Name == name:
			before := typed[:strings.LastIndexAny(typed, ":,")+1]
			for _, p := range m.Params {
				if !strings.Contains(","+keys, ","+p.Name+"=") {
					list = append(list, before+p.Name+"=\t"+briefly(p.Doc))
				}
			}
		}
	}
	return list
}

// briefly is the beginning of a description, for one line of a shell.
func briefly(doc string) string {
	const most = 40
	if end := strings.IndexAny(doc, ":;,."); end > 0 {
		doc = doc[:end]
	}
	if len(doc) <= most {
		return doc
	}
	return doc[:strings.LastIndex(doc[:most], " ")] + " …"
}
