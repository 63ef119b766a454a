package opset

import (
	"strings"
	"testing"
)

// Every step that changed a signature is named among the changes, and every change is a step
// of the table: the table is made by a script, the changes by hand.
func TestTablesAgree(t *testing.T) {
	table, err := readTable()
	if err != nil {
		t.Fatal(err)
	}
	if table.oldest != 7 || table.newest < 23 || len(table.operators) < 190 {
		t.Fatalf("the table has %d operators in the versions %d to %d", len(table.operators), table.oldest, table.newest)
	}
	list := changes()
	for op, versions := range table.operators {
		for i, v := range versions {
			before := i > 0 && versions[i-1].mark != removed
			if before && v.since > table.oldest && (v.mark == changed || v.mark == removed) && changeAt(list, op, v.since) == nil {
				t.Errorf("nothing says what becomes of %s at version %d", op, v.since)
			}
		}
	}
	seen := map[string]bool{}
	for _, c := range list {
		if c.what == "" || c.convert == nil {
			t.Errorf("the change of %s at %d is not complete", c.ops, c.since)
		}
		for _, op := range strings.Fields(c.ops) {
			v, known := table.at(op, c.since)
			if !known || v.since != c.since || c.since <= table.oldest || c.since > table.newest {
				t.Errorf("version %d said nothing of %s", c.since, op)
			}
			if key := op + string(rune(c.since)); seen[key] {
				t.Errorf("version %d has two changes of %s", c.since, op)
			} else {
				seen[key] = true
			}
		}
	}
	for v := table.oldest; v <= table.newest; v++ {
		if table.formats[v] < 3 {
			t.Errorf("no version of the file format is known for version %d", v)
		}
	}
}
