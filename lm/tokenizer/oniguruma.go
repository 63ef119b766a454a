package tokenizer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// translate writes a regular expression of Oniguruma's (with Ruby's syntax, as
// Hugging Face uses it; its doc/RE) in the syntax of regexp2. Their letters
// differ in what \w, \d, \h, ^, $ and . mean and in classes of classes. What is
// not known here is an error.
func translate(source string) (string, error) {
	t := translator{in: []rune(source)}
	if err := t.sequence(0, false); err != nil {
		return "", err
	}
	if t.at < len(t.in) {
		return "", errors.New("a ) has no (")
	}
	return t.out.String(), nil
}

type translator struct {
	in  []rune
	at  int
	out strings.Builder
}

// wordClass is \w inside of brackets. Outside of them it is also the powers and
// fractions of Latin-1, in wordLetters.
const (
	wordClass   = `\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\p{Other_Alphabetic}`
	wordLetters = wordClass + `²³¹¼½¾`
)

func (t *translator) peek(s string) bool {
	return strings.HasPrefix(string(t.in[t.at:min(len(t.in), t.at+len(s))]), s)
}

func (t *translator) take(s string) bool {
	if t.peek(s) {
		t.at += len([]rune(s))
		return true
	}
	return false
}

// sequence goes to the end of a group. With dotAll a dot is any letter.
func (t *translator) sequence(depth int, dotAll bool) error {
	if depth > 100 {
		return errors.New("its groups are nested too deeply")
	}
	repeatable := false
	for t.at < len(t.in) && t.in[t.at] != ')' {
		c := t.in[t.at]
		t.at++
		var err error
		atom := true
		switch c {
		case '(':
			atom, err = t.group(depth, &dotAll)
		case '[':
			var set class
			if set, err = t.class(0); err == nil {
				t.out.WriteString(set.String())
			}
		case '\\':
			atom, err = t.escape()
		case '.':
			t.out.WriteString(map[bool]string{true: `[\s\S]`, false: `[^\n]`}[dotAll])
		case '^':
			t.out.WriteString(`(?:\A|(?<=\n)(?!\z))`)
			atom = false
		case '$':
			t.out.WriteString(`(?=\n|\z)`)
			atom = false
		case '|':
			t.out.WriteByte('|')
			atom = false
		case '*', '+', '?':
			atom, err = false, t.repeat(string(c), repeatable)
		case '{':
			atom, err = t.interval(repeatable)
		default:
			t.out.WriteString(quote(c))
		}
		if err != nil {
			return err
		}
		repeatable = atom
	}
	return nil
}

// repeat writes a quantifier with what makes it lazy or possessive.
func (t *translator) repeat(quantifier string, repeatable bool) error {
	if !repeatable {
		return fmt.Errorf("there is nothing that %s repeats", quantifier)
	}
	t.out.WriteString(quantifier)
	if t.take("?") {
		t.out.WriteByte('?')
	} else if t.take("+") {
		t.out.WriteByte('+')
	}
	return nil
}

// interval writes {n}, {n,}, {n,m} and {,m}; other braces stand for themselves.
func (t *translator) interval(repeatable bool) (atom bool, err error) {
	end := t.at
	for end < len(t.in) && t.in[end] != '}' {
		end++
	}
	if end == len(t.in) {
		t.out.WriteString(`\{`)
		return true, nil
	}
	low, high, two := strings.Cut(string(t.in[t.at:end]), ",")
	_, lowErr := strconv.ParseUint(low, 10, 16)
	_, highErr := strconv.ParseUint(high, 10, 16)
	if low == "" && two && highErr == nil {
		low, lowErr = "0", nil
	}
	if lowErr != nil || two && high != "" && highErr != nil {
		t.out.WriteString(`\{`)
		return true, nil
	}
	if !repeatable {
		return false, errors.New("there is nothing that {} repeats")
	}
	t.at = end + 1
	if t.peek("?") || t.peek("+") {
		return false, errors.New("?, + behind {} are not known here")
	}
	t.out.WriteString("{" + low)
	if two {
		t.out.WriteString("," + high)
	}
	t.out.WriteByte('}')
	return false, nil
}

// group writes what stands behind a (. Nothing is captured, for nothing refers
// to it.
func (t *translator) group(depth int, dotAll *bool) (atom bool, err error) {
	opening, inner := "(?:", *dotAll
	switch {
	case !t.take("?"):
	case t.take(":"):
	case t.take("="):
		opening = "(?="
	case t.take("!"):
		opening = "(?!"
	case t.take(">"):
		opening = "(?>"
	case t.take("<="):
		opening = "(?<="
	case t.take("<!"):
		opening = "(?<!"
	case t.take("<"):
		for t.at < len(t.in) && t.in[t.at] != '>' {
			t.at++
		}
		if !t.take(">") {
			return false, errors.New("the name of a group does not end")
		}
	default:
		flags, err := t.flags(&inner)
		if err != nil {
			return false, err
		}
		opening = "(?" + flags + ":"
		if flags == "" {
			opening = "(?:"
		}
		if t.take(")") { // the flags are for the rest of the group that it stands in
			*dotAll = inner
			if flags != "" {
				t.out.WriteString("(?" + flags + ")")
			}
			return false, nil
		}
		if !t.take(":") {
			return false, fmt.Errorf("a group that starts with (?%s is not known here", string(t.in[t.at:min(len(t.in), t.at+1)]))
		}
	}
	t.out.WriteString(opening)
	if err := t.sequence(depth+1, inner); err != nil {
		return false, err
	}
	if !t.take(")") {
		return false, errors.New("a ( has no )")
	}
	t.out.WriteByte(')')
	return true, nil
}

// flags reads i and m, with or without a minus. Ruby's m is what others call s.
func (t *translator) flags(dotAll *bool) (string, error) {
	flags, on := "", true
	for t.at < len(t.in) {
		switch c := t.in[t.at]; {
		case c == '-' && on:
			on = false
		case c == 'm':
			*dotAll = on
		case c == 'i' && on:
			flags = "i"
		case c == 'i':
			flags = "-i"
		default:
			return flags, nil
		}
		t.at++
	}
	return flags, nil
}

// escape writes what stands behind a \ outside of brackets.
func (t *translator) escape() (atom bool, err error) {
	if t.at == len(t.in) {
		return false, errors.New(`it ends in \`)
	}
	switch c := t.in[t.at]; c {
	case 'A', 'z', 'Z':
		t.at++
		t.out.WriteString(`\` + string(c))
		return false, nil
	case 'b', 'B':
		t.at++
		w := "[" + wordLetters + "]"
		if c == 'b' {
			t.out.WriteString("(?:(?<=" + w + ")(?!" + w + ")|(?<!" + w + ")(?=" + w + "))")
		} else {
			t.out.WriteString("(?:(?<=" + w + ")(?=" + w + ")|(?<!" + w + ")(?!" + w + "))")
		}
		return false, nil
	case 'w':
		t.at++
		t.out.WriteString("[" + wordLetters + "]")
		return true, nil
	case 'W':
		t.at++
		t.out.WriteString("[^" + wordLetters + "]")
		return true, nil
	case 'R':
		t.at++
		t.out.WriteString(`(?>\r\n|[\n-\r\x85\u2028\u2029])`)
		return true, nil
	}
	item, err := t.escapedItem()
	if err != nil {
		return false, err
	}
	set := class{items: []classItem{item}}
	t.out.WriteString(set.String())
	return true, nil
}

// quote writes a letter that stands for itself.
func quote(r rune) string {
	switch {
	case r < 0x20 || r < 0x7F && isPunctuation(r) || r == ' ' || r == 0x7F:
		return fmt.Sprintf(`\x%02X`, r)
	case unicode.IsPrint(r) || r > 0xFFFF:
		return string(r)
	}
	return fmt.Sprintf(`\u%04X`, r)
}
