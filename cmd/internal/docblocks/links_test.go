package docblocks_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"`)

// Every link between pages leads to a file that is there and to a heading that it has.
func TestLinks(t *testing.T) {
	tried := 0
	for _, page := range markdown(t, root) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(withoutCode(string(data)), -1) {
			target := found[1] + found[2]
			if strings.Contains(target, "://") {
				continue
			}
			tried++
			file, heading, _ := strings.Cut(target, "#")
			path := page
			if file != "" {
				path = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
			}
			if strings.HasPrefix(page, filepath.Join(root, "scripts", "dist")) { // these pages lie at an archive's root
				path = filepath.Join(root, filepath.FromSlash(file))
			}
			text, err := os.ReadFile(path)
			if info, e := os.Stat(path); err != nil && (e != nil || !info.IsDir()) {
				t.Errorf("%s: %s leads to no file", page, target)
				continue
			}
			if heading != "" && !headings(string(text))[heading] {
				t.Errorf("%s: %s leads to no heading", page, target)
			}
		}
	}
	if tried < 200 {
		t.Errorf("%d links were looked at, more were expected", tried)
	}
}

// markdown are the pages of the repository that users and developers read.
func markdown(t *testing.T, root string) (pages []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (name == "build" || name == "node_modules" || strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".md"):
			pages = append(pages, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

var fenced = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")

// withoutCode has no blocks and no code in a line: brackets there are no links.
func withoutCode(text string) string { return fenced.ReplaceAllString(text, "") }

var headingLine = regexp.MustCompile(`(?m)^#+ (.+)$`)

// headings are the anchors of a page, as GitHub makes them of its headings.
func headings(text string) map[string]bool {
	all := map[string]bool{}
	for _, found := range headingLine.FindAllStringSubmatch(text, -1) {
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, found[1])
		all[anchor] = true
	}
	return all
}
