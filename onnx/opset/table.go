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

func readVersion(text string) (version, error) {
	digits := strings.TrimRight(text, string(extended+changed+removed))
	since, err := strconv.ParseInt(digits, 10, 64)
	return version{since, mark(text[len(digits):])}, err
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
