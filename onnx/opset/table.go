package opset

import (
	_ "embed" // the table of operators
	"fmt"
	"strconv"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// operatorsText is the table of operators, as testdata/operators.py writes it.
//
//go:embed operators.txt
var operatorsText string

// mark says how a version of an operator differs from the one before.
type mark string

const (
	extended mark = "+" // attributes with a default, or optional inputs or outputs, were added
	changed  mark = "!" // anything else in the signature
	removed  mark = "-" // the operator was taken out
)

// version is one that says something of an operator.
type version struct {
	since int64
	mark  mark // "" where only types of elements were added, or words changed

	inputs, outputs counts // that a node has
}

// counts are how many there may be of something; last is -1 where there is no most.
type counts struct{ first, last int }

func (c counts) has(n int) bool { return n >= c.first && (n <= c.last || c.last < 0) }

func (c counts) String() string {
	switch c.last {
	case c.first:
		return strconv.Itoa(c.first)
	case -1:
		return fmt.Sprintf("%d or more", c.first)
	}
	return fmt.Sprintf("%d to %d", c.first, c.last)
}

// table is what is known of the standard operators.
type table struct {
	oldest, newest int64
	formats        map[int64]int64      // version of the file format that came with a version of the operators
	operators      map[string][]version // from the one in force at the oldest version on
}

// readTable reads the table of operators.
func readTable() (*table, error) {
	t := &table{formats: map[int64]int64{}, operators: map[string][]version{}}
	for _, line := range strings.Split(operatorsText, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		var list []version
		for _, f := range fields[1:] {
			v, err := readVersion(f)
			if err != nil {
				return nil, fmt.Errorf("operators.txt: %q: %w", short.Name(line), err)
			}
			if n := len(list); n > 0 && !strings.Contains(f, ":") {
				v.inputs, v.outputs = list[n-1].inputs, list[n-1].outputs
			}
			list = append(list, v)
		}
		if v, err := strconv.ParseInt(fields[0], 10, 64); err != nil {
			t.operators[fields[0]] = list
		} else {
			if t.oldest == 0 {
				t.oldest = v
			}
			t.newest = v
			t.formats[v] = list[0].since
		}
	}
	return t, nil
}

func readVersion(text string) (v version, err error) {
	text, sizes, sized := strings.Cut(text, ":")
	digits := strings.TrimRight(text, string(extended+changed+removed))
	v.mark = mark(text[len(digits):])
	if v.since, err = strconv.ParseInt(digits, 10, 64); err != nil || !sized {
		return v, err
	}
	inputs, outputs, _ := strings.Cut(sizes, ",")
	if v.inputs, err = readCounts(inputs); err == nil {
		v.outputs, err = readCounts(outputs)
	}
	return v, err
}

// readCounts reads 2, 1-3 or 1-.
func readCounts(text string) (c counts, err error) {
	first, last, ranged := strings.Cut(text, "-")
	if c.first, err = strconv.Atoi(first); err != nil {
		return c, err
	}
	switch {
	case !ranged:
		c.last = c.first
	case last == "":
		c.last = -1
	default:
		c.last, err = strconv.Atoi(last)
	}
	return c, err
}

// at returns which version of an operator is in force at a version of the operators; false
// where the operator is unknown then.
func (t *table) at(op string, opset int64) (version, bool) {
	var found version
	for _, v := range t.operators[op] {
		if v.since <= opset {
			found = v
		}
	}
	return found, found.since > 0
}
