package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// textMethods are Python's methods of texts. Places are counted in characters.
var textMethods = map[string]func(m *machine, s string, given passed) any{
	"strip":  stripped(strings.TrimFunc),
	"lstrip": stripped(strings.TrimLeftFunc),
	"rstrip": stripped(strings.TrimRightFunc),
	"upper":  plain("upper", func(s string) any { return upper(s) }),
	"lower":  plain("lower", func(s string) any { return lower(s) }),
	"title":  plain("title", func(s string) any { return title(s) }),
	"capitalize": plain("capitalize", func(s string) any {
		return capitalize(s)
	}),
	"swapcase": plain("swapcase", func(s string) any { return swapCase(s) }),
	"isascii":  plain("isascii", func(s string) any { return ascii(s) }),
	"isspace":  every("isspace", true, IsSpace),
	"isalpha":  every("isalpha", true, unicode.IsLetter),
	"isalnum":  every("isalnum", false, func(r rune) bool { return unicode.IsLetter(r) || r >= '0' && r <= '9' }),
	"isdigit":  every("isdigit", false, func(r rune) bool { return r >= '0' && r <= '9' }),
	"isdecimal": every("isdecimal", true, func(r rune) bool {
		return unicode.Is(unicode.Nd, r)
	}),
	"isnumeric": every("isnumeric", false, func(r rune) bool { return r >= '0' && r <= '9' }),
	"isupper":   plain("isupper", func(s string) any { return hasCase("isupper", s, 'A', 'a') }),
	"islower":   plain("islower", func(s string) any { return hasCase("islower", s, 'a', 'A') }),
	"replace": func(m *machine, s string, given passed) any {
		a := given.bind("replace", 2, "/old", "/new", "/count")
		return m.replace(s, m.text("replace", a[0]), m.text("replace", a[1]), m.integerOr("replace", a[2], -1))
	},
	"startswith": fixed("startswith", strings.HasPrefix),
	"endswith":   fixed("endswith", strings.HasSuffix),
	"removeprefix": func(m *machine, s string, given passed) any {
		return strings.TrimPrefix(s, m.text("removeprefix", given.bind("removeprefix", 1, "/prefix")[0]))
	},
	"removesuffix": func(m *machine, s string, given passed) any {
		return strings.TrimSuffix(s, m.text("removesuffix", given.bind("removesuffix", 1, "/suffix")[0]))
	},
	"split":  splitMethod("split", false),
	"rsplit": splitMethod("rsplit", true),
	"splitlines": func(m *machine, s string, given passed) any {
		if a := given.bind("splitlines", 0, "keepends"); a[0] != (absent{}) {
			failf("splitlines with keepends is not supported")
		}
		return texts(lines(s))
	},
	"join": func(m *machine, s string, given passed) any {
		a := given.bind("join", 1, "/iterable")
		var parts []string
		if _, ok := a[0].(undefined); ok {
			failf("join of an undefined value is not supported")
		}
		for _, one := range m.iterate(a[0]) {
			parts = append(parts, m.text("join", one))
		}
		return m.joined(parts, s)
	},
	"format": func(m *machine, s string, given passed) any { return m.format(s, given) },
	"find":   find("find", strings.Index, false),
	"index":  find("index", strings.Index, true),
	"rfind":  find("rfind", strings.LastIndex, false),
	"count": func(m *machine, s string, given passed) any {
		return int64(strings.Count(s, m.text("count", given.bind("count", 1, "/sub")[0])))
	},
	"partition": func(m *machine, s string, given passed) any {
		sep := m.text("partition", given.bind("partition", 1, "/sep")[0])
		notEmpty(sep)
		before, after, found := strings.Cut(s, sep)
		if !found {
			sep = ""
		}
		return tuple{before, sep, after}
	},
	"rpartition": func(m *machine, s string, given passed) any {
		sep := m.text("rpartition", given.bind("rpartition", 1, "/sep")[0])
		notEmpty(sep)
		at := strings.LastIndex(s, sep)
		if at < 0 {
			return tuple{"", "", s}
		}
		return tuple{s[:at], sep, s[at+len(sep):]}
	},
	"ljust": padded("ljust", func(n int) (int, int) { return 0, n }),
	"rjust": padded("rjust", func(n int) (int, int) { return n, 0 }),
	"zfill": func(m *machine, s string, given passed) any {
		width := m.integer("zfill", given.bind("zfill", 1, "/width")[0])
		sign := ""
		if s != "" && (s[0] == '-' || s[0] == '+') {
			sign, s = s[:1], s[1:]
		}
		n := max(width-m.length(s)-int64(len(sign)), 0)
		return sign + m.repeat("0", n).(string) + s
	},
}

// plain is a method without arguments.
func plain(name string, of func(string) any) func(*machine, string, passed) any {
	return func(_ *machine, s string, given passed) any {
		given.bind(name, 0)
		return of(s)
	}
}

// every says whether a text is not empty and all of its characters are of a class.
// Classes that Go does not have beyond ASCII are refused there.
func every(name string, beyondASCII bool, class func(rune) bool) func(*machine, string, passed) any {
	return plain(name, func(s string) any {
		if !beyondASCII && !ascii(s) {
			failf("%s of a text beyond ASCII is not supported", name)
		}
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !class(r) }) < 0
	})
}

// hasCase says whether a text has letters of one case and none of the other.
func hasCase(name, s string, yes, no byte) bool {
	if !ascii(s) {
		failf("%s of a text beyond ASCII is not supported", name)
	}
	has := func(first byte) bool {
		return strings.IndexFunc(s, func(r rune) bool { return byte(r) >= first && byte(r) < first+26 }) >= 0
	}
	return has(yes) && !has(no)
}

func stripped(trim func(string, func(rune) bool) string) func(*machine, string, passed) any {
	return func(m *machine, s string, given passed) any {
		a := given.bind("strip", 0, "/chars")
		return m.trimmed(trim, s, a[0])
	}
}

func (m *machine) trimmed(trim func(string, func(rune) bool) string, s string, chars any) string {
	if chars == nil || chars == (absent{}) {
		return trim(s, IsSpace)
	}
	set := m.text("strip", chars)
	m.made(set)
	return trim(s, func(r rune) bool {
		m.spend(1 + len(set)/16)
		return strings.ContainsRune(set, r)
	})
}

func fixed(name string, has func(s, part string) bool) func(*machine, string, passed) any {
	return func(m *machine, s string, given passed) any {
		a := given.bind(name, 1, "/part")
		if several, ok := a[0].(tuple); ok {
			for _, part := range several {
				if has(s, m.text(name, part)) {
					return true
				}
			}
			return false
		}
		return has(s, m.text(name, a[0]))
	}
}

func find(name string, index func(s, part string) int, must bool) func(*machine, string, passed) any {
	return func(m *machine, s string, given passed) any {
		at := index(s, m.text(name, given.bind(name, 1, "/sub")[0]))
		if at < 0 {
			if must {
				failf("the text to find by %s is not there", name)
			}
			return int64(-1)
		}
		return int64(utf8.RuneCountInString(s[:at]))
	}
}

func padded(name string, sides func(n int) (left, right int)) func(*machine, string, passed) any {
	return func(m *machine, s string, given passed) any {
		a := given.bind(name, 1, "/width", "/fillchar")
		fill := " "
		if a[1] != (absent{}) {
			fill = m.text(name, a[1])
		}
		if utf8.RuneCountInString(fill) != 1 {
			failf("%s fills with one character", name)
		}
		n := max(m.integer(name, a[0])-m.length(s), 0)
		m.spend(int(min(n, MaxSteps)))
		left, right := sides(int(min(n, MaxSteps)))
		return strings.Repeat(fill, left) + s + strings.Repeat(fill, right)
	}
}

func notEmpty(sep string) {
	if sep == "" {
		failf("the separator is empty")
	}
}

// replace replaces the first n of old, or all where n is negative.
func (m *machine) replace(s, old, replacement string, n int64) string {
	count := int64(strings.Count(s, old))
	if n >= 0 {
		count = min(count, n)
	}
	if grows := count * int64(len(replacement)-len(old)); grows > 0 {
		m.spend(int(min(grows/16, MaxSteps+1)))
	}
	m.made(s)
	return strings.Replace(s, old, replacement, int(count))
}

func (m *machine) joined(parts []string, sep string) string {
	size := 0
	for _, part := range parts {
		size += len(part) + len(sep)
	}
	m.spend(size / 16)
	return strings.Join(parts, sep)
}

func texts(parts []string) List {
	l := make(List, len(parts))
	for i, part := range parts {
		l[i] = part
	}
	return l
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

func upper(s string) string {
	if ascii(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

func lower(s string) string {
	if ascii(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

// noSigma refuses the one letter whose small form depends on what is around it.
func noSigma(s string) {
	if strings.ContainsRune(s, 'Σ') {
		failf("changing the case of a text with a Σ is not supported")
	}
}

func capitalize(s string) string {
	noSigma(s)
	_, n := utf8.DecodeRuneInString(s)
	return titleLetter(s[:n]) + lower(s[n:])
}

func titleLetter(s string) string {
	if ascii(s) {
		return strings.ToUpper(s)
	}
	return cases.Title(language.Und, cases.NoLower).String(s)
}

// title has a capital wherever a letter follows what is no letter.
func title(s string) string {
	noSigma(s)
	var b strings.Builder
	after := false
	for _, r := range s {
		letter := string(r)
		if after {
			b.WriteString(lower(letter))
		} else {
			b.WriteString(titleLetter(letter))
		}
		after = cased(r)
	}
	return b.String()
}

func cased(r rune) bool {
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

func swapCase(s string) string {
	noSigma(s)
	var b strings.Builder
	for _, r := range s {
		if unicode.IsUpper(r) {
			b.WriteString(lower(string(r)))
		} else if unicode.IsLower(r) {
			b.WriteString(upper(string(r)))
		} else if cased(r) {
			failf("swapcase of %q is not supported", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
