package version

import (
	"fmt"
	"testing"
)

func Example() {
	fmt.Println(Info{Version: "0.1.0", Revision: "1a2b3c4d5e6f7081", Modified: true})
	// Output: 0.1.0 (1a2b3c4d5e6f with changes)
}

func TestString(t *testing.T) {
	if got := (Info{Version: "0.1.0"}).String(); got != "0.1.0" {
		t.Errorf("without a revision it says %q", got)
	}
}
