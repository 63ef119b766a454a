package rope

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// Kind is the type of a parameter's value.
type Kind uint8

const (
	// Absent is the kind of the zero Value.
	Absent Kind = iota
	// Real is a finite number.
	Real
	// Whole is an integer of at most 53 bits.
	Whole
	// Switch is true or false.
	Switch
	// Tokens is an integer of at most 53 bits, or a share of the context, written
	// L/3; methods see the integer.
	Tokens
	// Reals is a list of finite numbers, written [1;1.5;2].
	Reals
	// Word is one of the words that the parameter lists.
	Word
)

// String returns the kind as errors and documentation name it.
func (k Kind) String() string {
	switch k {
	case Real:
		return "a number"
	case Whole:
		return "an integer"
	case Tokens:
		return "a number of tokens, or a share of the context such as L/3"
	case Switch:
		return "true or false"
	case Reals:
		return "a list of numbers [a;b;…]"
	case Word:
		return "a word"
	}
	return "nothing"
}

// Value is the value of one parameter. The zero Value stands for absence.
type Value struct {
	kind   Kind
	number float64 // Real, Whole, Tokens; Switch: 0 or 1
	share  bool    // of Tokens: the context divided by number
	list   []float64
	text   string // Word
}

// Number returns a value of kind Real.
func Number(x float64) Value { return Value{kind: Real, number: x} }

// Integer returns a value of kind Whole.
func Integer(x int64) Value { return Value{kind: Whole, number: float64(x)} }

// Share returns a value of kind Tokens: the context divided by n, rounded down.
func Share(n int64) Value { return Value{kind: Tokens, number: float64(n), share: true} }

// Bool returns a value of kind Switch.
func Bool(x bool) Value {
	if x {
		return Value{kind: Switch, number: 1}
	}
	return Value{kind: Switch}
}

// List returns a value of kind Reals.
func List(x ...float64) Value { return Value{kind: Reals, list: slices.Clone(x)} }

// Text returns a value of kind Word.
func Text(word string) Value { return Value{kind: Word, text: word} }

// Kind returns the value's kind.
func (v Value) Kind() Kind { return v.kind }

// Integer returns the number of a value of kind Real, Whole or Tokens, rounded towards
// zero; 0 of other kinds.
func (v Value) Integer() int64 { return int64(v.number) }

// Equal says whether two values are of one kind and hold the same numbers.
func (v Value) Equal(w Value) bool {
	return v.kind == w.kind && v.number == w.number && v.share == w.share && v.text == w.text && slices.Equal(v.list, w.list)
}

// String returns the value as ParseSpec reads it.
func (v Value) String() string {
	switch v.kind {
	case Real, Whole, Tokens:
		if v.share {
			return "L/" + formatNumber(v.number)
		}
		return formatNumber(v.number)
	case Switch:
		return strconv.FormatBool(v.number != 0)
	case Reals:
		texts := make([]string, len(v.list))
		for i, x := range v.list {
			texts[i] = formatNumber(x)
		}
		return "[" + strings.Join(texts, ";") + "]"
	}
	return v.text
}

// Numbers returns the numbers of a value: one, or those of a list; nil of other kinds.
func (v Value) Numbers() []float64 {
	switch v.kind {
	case Real, Whole, Tokens:
		return []float64{v.number}
	case Reals:
		return v.list
	}
	return nil
}

// maxWhole bounds integers so that float64 holds every one exactly.
const maxWhole = 1 << 53

// check refuses what no parameter takes, whichever way the value was made.
func (v Value) check() error {
	for _, x := range v.Numbers() {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return errors.New("must be finite")
		}
	}
	if v.share && v.number < 1 {
		return errors.New("must be the context divided by 1 or more")
	}
	if (v.kind == Whole || v.kind == Tokens) && (v.number != math.Trunc(v.number) || math.Abs(v.number) > maxWhole) {
		return errors.New("must be an integer of at most 53 bits")
	}
	if v.kind == Reals && len(v.list) == 0 {
		return errors.New("must not be empty")
	}
	return nil
}

// formatNumber writes ordinary numbers without an exponent; the shortest text
// that reads back as the same float64.
func formatNumber(x float64) string {
	if a := math.Abs(x); a == 0 || (a >= 1e-4 && a < 1e16) {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// parseNumber reads a decimal number. Hexadecimal floats, underscores, inf and
// nan are refused, though strconv knows them.
func parseNumber(text string) (float64, error) {
	if text == "" || strings.Trim(text, "0123456789+-.eE") != "" {
		return 0, errors.New("is not a number")
	}
	x, err := strconv.ParseFloat(text, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, errors.New("is beyond the range of a float64")
	}
	if err != nil {
		return 0, errors.New("is not a number")
	}
	return x + 0, nil // −0 becomes 0, so that the text is one with the value
}

// parseValue reads a value of the given kind.
func parseValue(kind Kind, text string) (Value, error) {
	switch kind {
	case Tokens:
		divisor, share := strings.CutPrefix(text, "L/")
		x, err := parseNumber(divisor)
		if err != nil {
			return Value{}, errors.New("is neither a number of tokens nor a share of the context")
		}
		v := Value{kind: kind, number: x, share: share}
		return v, v.check()
	case Real, Whole:
		x, err := parseNumber(text)
		if err != nil {
			return Value{}, err
		}
		v := Value{kind: kind, number: x}
		return v, v.check()
	case Switch:
		if text != "true" && text != "false" {
			return Value{}, errors.New("is neither true nor false")
		}
		return Bool(text == "true"), nil
	case Word:
		return Text(text), nil
	case Reals:
		inner, open := strings.CutPrefix(text, "[")
		inner, closed := strings.CutSuffix(inner, "]")
		if !open || !closed {
			return Value{}, errors.New("is not a list; write [a;b;…]")
		}
		v := Value{kind: Reals}
		for item := range strings.SplitSeq(inner, ";") {
			x, err := parseNumber(strings.TrimSpace(item))
			if err != nil {
				return Value{}, fmt.Errorf("holds %q, which %w", short.Name(item), err)
			}
			v.list = append(v.list, x)
		}
		return v, nil
	}
	return Value{}, errors.New("has no kind")
}
