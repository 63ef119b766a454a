// Package testmarkup looks for what a name could bring into a page or a picture, for tests.
package testmarkup

import (
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// Hostile are names that would be elements, attributes or the end of one where they are not escaped, and such that turn text around,
// hide it, or that a terminal acts on.
var Hostile = []string{
	"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "' onload='alert(1)", "]]><evil/>", "--><evil/>", "&lt;evil&gt;&amp;&#60;evil&#62;",
	"</title></style><evil>", "javascript:alert(1)", "{{.}}${evil}",
	"\x1b[2J\x1b]52;c;ZXZpbA==\x07", "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "\u009b31m", "a\bb\rc\nd", "\u202etxt.exe", "zero\u200bwidth", "\xff\xfe", "\x00",
}

// known are elements of our own pages and pictures.
var known = regexp.MustCompile(`^(html|meta|title|style|h1|h2|p|pre|br|b|table|tr|th|td|dl|dt|dd|picture|source|img|svg|g|path|rect|text|line|image|defs|clipPath|desc)$`)

// loads says why a browser does not load what an attribute names: a page holds its pictures itself.
func loads(attribute, value string) error {
	switch attribute {
	case "src", "srcset":
	case "href":
		_, err := url.Parse(value)
		return err
	default:
		return nil
	}
	media, data, found := strings.Cut(value, ",")
	if !found || !strings.HasPrefix(media, "data:image/") || !strings.HasSuffix(media, ";base64") {
		return errors.New("no picture within the page")
	}
	_, err := base64.StdEncoding.DecodeString(data)
	return err
}

// Check parses a page (HTML) or a picture (SVG) and fails where it has an element or an attribute that is not of ours, or a character that
// turns what follows around.
func Check(t testing.TB, page string) {
	t.Helper()
	svg := strings.HasPrefix(strings.TrimSpace(page), "<?xml")
	d := xml.NewDecoder(strings.NewReader(page))
	if !svg {
		d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	}
	elements := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("it cannot be parsed: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			elements++
			if !known.MatchString(e.Name.Local) {
				t.Errorf("it has an element %q", e.Name.Local)
			}
			for _, a := range e.Attr {
				if err := loads(a.Name.Local, a.Value); err != nil {
					t.Errorf("an element %s has %s=%.80q: %v", e.Name.Local, a.Name.Local, a.Value, err)
				}
				if name := strings.ToLower(a.Name.Local); strings.HasPrefix(name, "on") || strings.Contains(strings.ToLower(a.Value), "javascript:") && name != "alt" {
					t.Errorf("an element %s has %s=%q", e.Name.Local, a.Name.Local, a.Value)
				}
			}
		case xml.Comment:
			if strings.Contains(string(e), "evil") {
				t.Errorf("a comment holds %q", e)
			}
		}
	}
	if elements < 3 {
		t.Errorf("only %d elements were seen", elements)
	}
	for i, r := range page {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Bidi_Control) {
			t.Errorf("it has the character %U: %q", r, page[max(i-40, 0):min(i+40, len(page))])
			break
		}
	}
}
