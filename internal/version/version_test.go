package version

import (
	"fmt"
	"runtime/debug"
	"testing"
)

func Example() {
	fmt.Println(text("0.1.0", []debug.BuildSetting{{Key: "vcs.revision", Value: "1a2b3c4d5e6f7081"}, {Key: "vcs.modified", Value: "true"}}))
	// Output: 0.1.0 (1a2b3c4d5e6f, changed)
}

func TestText(t *testing.T) {
	if got := text("0.1.0", nil); got != "0.1.0" {
		t.Errorf("without a revision it says %q", got)
	}
}
