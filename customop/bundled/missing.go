//go:build !bundled

package bundled

import (
	"fmt"
	"os"
)

// A program that is built without the tag would look for the library elsewhere and fail where there is none,
// on another machine than the one it was built on.
func init() {
	fmt.Fprintln(os.Stderr, "customop/bundled: this program was built without -tags bundled, so it carries no op library; build it from a release's sources with -tags bundled")
}
