package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// words are what a change of words made of the texts and keys of a record. A line of the file is
// KIND, tab, OLD, tab, NEW: "key" renames a key of reports, "added" names a key that older reports have not,
// "value" renames a whole value of reports, "text" is a regular expression for texts. Records in the metadata of models keep their keys.
type words struct {
	keys   map[string]string
	added  map[string]bool
	values map[string]string
	texts  []replacement
}

type replacement struct {
	old *regexp.Regexp
	new string
}

func readWords(path string) (*words, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	w := &words{keys: map[string]string{}, added: map[string]bool{}, values: map[string]string{}}
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		f := strings.Split(line, "\t")
		switch {
		case strings.HasPrefix(line, "#"):
		case f[0] == "added" && len(f) == 2:
			w.added[f[1]] = true
		case f[0] == "key" && len(f) == 3:
			w.keys[f[1]] = f[2]
		case f[0] == "value" && len(f) == 3:
			w.values[f[1]] = f[2]
		case f[0] == "text" && len(f) == 3:
			old, err := regexp.Compile(f[1])
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
			}
			w.texts = append(w.texts, replacement{old, f[2]})
		default:
			return nil, fmt.Errorf("%s:%d: key, added, value or text was expected, with tabs between", path, i+1)
		}
	}
	return w, nil
}

// compare returns the first entries that differ between two records, the older one in the newer words.
func compare(before, after string, w *words) (differences []string) {
	old, now := entries(before), entries(after)
	for i := range max(len(old), len(now)) {
		var a, b string
		if i < len(old) {
			a = w.translate(old[i], true)
		}
		if i < len(now) {
			b = w.translate(now[i], false)
		}
		if a != b {
			differences = append(differences, firstLines(a, b))
		}
	}
	return differences
}

// entries splits a record into those of single runs.
func entries(text string) []string {
	return strings.Split(strings.TrimPrefix("\n"+text, "\n== "), "\n== ")
}

// translate lays the report of an entry out anew: in the newer words where it is old, and without what is
// newer than them where it is not.
func (w *words) translate(entry string, old bool) string {
	head, report, tail := parts(entry)
	if report != "" {
		var value any
		decoder := json.NewDecoder(strings.NewReader(report))
		decoder.UseNumber()
		if decoder.Decode(&value) == nil {
			var b bytes.Buffer
			encoder := json.NewEncoder(&b)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", " ")
			_ = encoder.Encode(w.keysOf(value, old)) // it was read a moment ago
			report = b.String()
		}
	}
	text := strings.Join(strings.Fields(head), " ") + "\n" + report + tail
	if old {
		for _, r := range w.texts {
			text = r.old.ReplaceAllString(text, r.new)
		}
	}
	return text
}

// parts splits an entry into its messages, its report and its digests.
func parts(entry string) (head, report, tail string) {
	i := strings.Index(entry, "\n{\n")
	if i < 0 {
		return entry, "", ""
	}
	j := strings.LastIndex(entry, "\n}")
	return entry[:i], entry[i+1 : j+2], entry[j+2:]
}

func (w *words) keysOf(value any, old bool) any {
	switch v := value.(type) {
	case string:
		if renamed := w.values[v]; old && renamed != "" {
			return renamed
		}
	case []any:
		for i := range v {
			v[i] = w.keysOf(v[i], old)
		}
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			switch {
			case key == "record": // it keeps its keys
			case !old && w.added[key]:
				continue
			case old && w.keys[key] != "":
				key = w.keys[key]
				fallthrough
			default:
				value = w.keysOf(value, old)
			}
			out[key] = value
		}
		return out
	}
	return value
}

// firstLines returns the first line in which two texts differ.
func firstLines(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(x), len(y)) {
		var p, q string
		if i < len(x) {
			p = x[i]
		}
		if i < len(y) {
			q = y[i]
		}
		if p != q {
			return x[0] + "\n- " + p + "\n+ " + q
		}
	}
	return ""
}
