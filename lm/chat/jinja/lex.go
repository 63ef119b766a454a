package jinja

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

type kind int

const (
	kindEnd kind = iota
	kindData
	kindVariableBegin
	kindVariableEnd
	kindBlockBegin
	kindBlockEnd
	kindName
	kindString
	kindInteger
	kindFloat
	kindOperator
)

// token is a piece of the template. Its text is what it stands for: that of a
// string has no quotes and no escapes.
type token struct {
	kind kind
	text string
	line int
}

// The shapes of Jinja's lexer. Names are those of ASCII: Python allows more, and
// the rest is an unexpected character here.
var (
	floatShape    = regexp.MustCompile(`^(?i:(?:[0-9]+_)*[0-9]+(?:(?:\.(?:[0-9]+_)*[0-9]+)?e[+\-]?(?:[0-9]+_)*[0-9]+|\.(?:[0-9]+_)*[0-9]+))`)
	integerShape  = regexp.MustCompile(`^(?i:0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[0-9a-f])+|[1-9](?:_?[0-9])*|0(?:_?0)*)`)
	nameShape     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)
	stringShape   = regexp.MustCompile(`^(?s:'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")`)
	operatorShape = regexp.MustCompile(`^(?://|\*\*|==|!=|>=|<=|[-+/*%~\[\](){}><=.:|,;])`)
	rawShape      = regexp.MustCompile(`^\{%([-+]?)\s*raw\s*(?:-%\}|%\})`)
	endRawShape   = regexp.MustCompile(`\{%([-+]?)\s*endraw\s*(?:\+%\}|-%\}|%\}\n?)`)
	lineEnds      = strings.NewReplacer("\r\n", "\n", "\r", "\n")
)

type lexer struct {
	text     string
	at       int
	line     int
	tokens   []token
	newLine  bool     // what was read last ended a line
	balanced []string // the closing brackets that are awaited
}

// lex cuts a template into tokens as Jinja does with trim_blocks and
// lstrip_blocks. The last line end is dropped.
func lex(text string) []token {
	text = strings.TrimSuffix(lineEnds.Replace(text), "\n")
	l := &lexer{text: text, line: 1, newLine: true}
	for l.at < len(l.text) {
		l.data()
	}
	return append(l.tokens, token{kindEnd, "", l.line})
}

func (l *lexer) add(k kind, text string) { l.tokens = append(l.tokens, token{k, text, l.line}) }

// take moves behind the next n bytes.
func (l *lexer) take(n int) string {
	taken := l.text[l.at : l.at+n]
	l.at += n
	l.line += strings.Count(taken, "\n")
	l.newLine = strings.HasSuffix(taken, "\n")
	return taken
}

func (l *lexer) rest() string { return l.text[l.at:] }

// data reads text up to the next tag, and the tag.
func (l *lexer) data() {
	rest := l.rest()
	start := 0
	for {
		n := strings.IndexByte(rest[start:], '{')
		if n < 0 {
			l.addData(l.take(len(rest)))
			return
		}
		start += n
		if next := rest[start:]; len(next) > 1 && strings.IndexByte("%{#", next[1]) >= 0 {
			break
		}
		start++
	}
	tag := rest[start:]
	sign := ""
	if len(tag) > 2 && (tag[2] == '-' || tag[2] == '+') {
		sign = tag[2:3]
	}
	before, lineStart := rest[:start], l.newLine
	line := l.line
	l.take(start)
	l.tokens = append(l.tokens, token{kindData, trimBefore(before, sign, tag[1] != '{', lineStart), line})
	raw := rawShape.FindString(tag)
	switch {
	case raw != "":
		l.raw(raw)
	case tag[1] == '#':
		l.comment(sign)
	case tag[1] == '%':
		l.add(kindBlockBegin, "")
		l.take(2 + len(sign))
		l.code(kindBlockEnd, "%}")
	default:
		l.add(kindVariableBegin, "")
		l.take(2 + len(sign))
		l.code(kindVariableEnd, "}}")
	}
}

func (l *lexer) addData(text string) { l.add(kindData, text) }

// trimBefore drops the blanks before a tag: all by a minus, those of the tag's
// own line before a block or a comment, and none by a plus.
func trimBefore(text, sign string, block, lineStart bool) string {
	if sign == "-" {
		return strings.TrimRightFunc(text, IsSpace)
	}
	if sign == "+" || !block {
		return text
	}
	line := strings.LastIndexByte(text, '\n') + 1
	if (line > 0 || lineStart) && strings.TrimLeftFunc(text[line:], IsSpace) == "" {
		return text[:line]
	}
	return text
}

// takeEnd moves behind the end of a tag, and what it swallows: all blanks after a
// minus, one line end after a block, nothing after a plus.
func (l *lexer) takeEnd(end string, plus bool) bool {
	rest := l.rest()
	switch {
	case plus && strings.HasPrefix(rest, "+"+end):
		l.take(1 + len(end))
	case strings.HasPrefix(rest, "-"+end):
		blank := rest[1+len(end):]
		l.take(1 + len(end) + len(blank) - len(strings.TrimLeftFunc(blank, IsSpace)))
	case strings.HasPrefix(rest, end+"\n") && plus:
		l.take(len(end) + 1)
	case strings.HasPrefix(rest, end):
		l.take(len(end))
	default:
		return false
	}
	return true
}

func (l *lexer) comment(sign string) {
	line := l.line
	l.take(2 + len(sign))
	for l.at < len(l.text) {
		if l.takeEnd("#}", true) {
			return
		}
		// The end may be marked by a sign, so it is looked for one byte before it.
		n := strings.Index(l.text[l.at+1:], "#}")
		switch {
		case n < 0:
			l.take(len(l.rest()))
		case n > 0 && strings.IndexByte("+-", l.text[l.at+n]) >= 0:
			l.take(n)
		default:
			l.take(n + 1)
		}
	}
	failf("line %d: a comment is not ended with #}", line)
}

func (l *lexer) raw(begin string) {
	line := l.line
	l.take(len(begin))
	if strings.HasSuffix(begin, "-%}") {
		l.take(len(l.rest()) - len(strings.TrimLeftFunc(l.rest(), IsSpace)))
	}
	rest := l.rest()
	end := endRawShape.FindStringSubmatchIndex(rest)
	if end == nil {
		failf("line %d: raw is not ended with endraw", line)
	}
	lineStart := l.newLine
	l.addData(trimBefore(rest[:end[0]], rest[end[2]:end[3]], true, lineStart))
	l.take(end[1])
	if strings.HasSuffix(rest[:end[1]], "-%}") {
		l.take(len(l.rest()) - len(strings.TrimLeftFunc(l.rest(), IsSpace)))
	}
}

// code reads the tokens of a block or a variable up to its end.
func (l *lexer) code(endKind kind, end string) {
	begin := l.line
	l.balanced = nil
	for l.at < len(l.text) {
		rest := l.rest()
		line := l.line
		if len(l.balanced) == 0 && l.takeEnd(end, endKind == kindBlockEnd) {
			l.tokens = append(l.tokens, token{endKind, "", line})
			return
		}
		if blank := len(rest) - len(strings.TrimLeftFunc(rest, IsSpace)); blank > 0 {
			l.take(blank)
			continue
		}
		l.word(rest)
	}
	failf("line %d: a tag is not ended with %s", begin, end)
}

func (l *lexer) word(rest string) {
	line := l.line
	add := func(k kind, text string) { l.tokens = append(l.tokens, token{k, text, line}) }
	if m := floatShape.FindString(rest); m != "" && (l.at == 0 || l.text[l.at-1] != '.') {
		add(kindFloat, strings.ReplaceAll(l.take(len(m)), "_", ""))
	} else if m := integerShape.FindString(rest); m != "" {
		add(kindInteger, strings.ReplaceAll(l.take(len(m)), "_", ""))
	} else if m := nameShape.FindString(rest); m != "" {
		add(kindName, l.take(len(m)))
	} else if m := stringShape.FindString(rest); m != "" {
		add(kindString, unescape(m[1:len(m)-1], line))
		l.take(len(m))
	} else if m := operatorShape.FindString(rest); m != "" {
		l.balance(m)
		add(kindOperator, l.take(len(m)))
	} else {
		r, _ := utf8.DecodeRuneInString(rest)
		failf("line %d: %q is not expected in a tag", line, r)
	}
}

func (l *lexer) balance(operator string) {
	switch operator {
	case "(":
		l.balanced = append(l.balanced, ")")
	case "[":
		l.balanced = append(l.balanced, "]")
	case "{":
		l.balanced = append(l.balanced, "}")
	case ")", "]", "}":
		last := len(l.balanced) - 1
		if last < 0 || l.balanced[last] != operator {
			failf("line %d: %q closes no bracket", l.line, short.Name(operator))
		}
		l.balanced = l.balanced[:last]
	}
}
