package evaluation

import (
	"fmt"
	"slices"
	"strings"
)

// ShortName is a variant's name without the axes of its methods.
func ShortName(name string) string {
	return strings.NewReplacer("scaling ", "", "positions ", "", "mask ", "").Replace(name)
}

// ShortNames are different names with at most so many letters. Where the beginnings of several are the same,
// the ends are shown too; names that neither tells apart are numbered.
func ShortNames(names []string, width int) []string {
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = ShortName(name)
	}
	if !distinct(short) {
		short = slices.Clone(names) // only the axis tells them apart
	}
	list := make([]string, len(short))
	for head := width - 1; head >= width/3; head-- {
		for i, name := range short {
			list[i] = cut(name, head, width)
		}
		if distinct(list) {
			return list
		}
	}
	for i, name := range short {
		end := fmt.Sprintf("…%d", i+1)
		if list[i] = name; len([]rune(name)) > width {
			list[i] = string([]rune(name)[:width-len([]rune(end))]) + end
		}
	}
	return list
}

// cut leaves the first letters of a name that is too long, and as many of the last ones as fit.
func cut(name string, head, width int) string {
	letters := []rune(name)
	if len(letters) <= width {
		return name
	}
	return string(letters[:head]) + "…" + string(letters[len(letters)-(width-1-head):])
}

// fileNames leave of names what any file may be called; they stay different.
func fileNames(names []string) (list []string) {
	for _, name := range names {
		file := strings.Trim(strings.Map(func(r rune) rune {
			if r < 128 && strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.", r) {
				return r
			}
			return '-'
		}, name), "-.")
		for n, stem := 2, file; slices.ContainsFunc(list, func(other string) bool { return strings.EqualFold(other, file) }); n++ {
			file = fmt.Sprintf("%s-%d", stem, n) // some file systems take A for a
		}
		list = append(list, file)
	}
	return list
}

// distinct reports whether no two names are the same.
func distinct(names []string) bool {
	seen := map[string]bool{}
	for _, name := range names {
		seen[name] = true
	}
	return len(seen) == len(names)
}
