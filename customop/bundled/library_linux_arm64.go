//go:build bundled

package bundled

import (
	_ "embed"

	"github.com/rope-rewrite/rope-rewrite/customop/bundled/carry"
)

//go:embed librope_ops_linux_arm64.so
var library []byte

func init() { carry.Set(library) }
