package short

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote escapes, as JSON does (\u001b), what a terminal or a page would act on, or what would
// change how other text looks: control characters, those that change the direction
// of writing, and bytes that are not UTF-8 (\xff). Line breaks and tabs
// stay.
func Quote(text string) string {
	var out strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp):
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}
