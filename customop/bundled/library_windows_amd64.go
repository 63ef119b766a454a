//go:build bundled

package bundled

import (
	_ "embed"

	"github.com/rope-rewrite/rope-rewrite/customop/bundled/carry"
)

//go:embed librope_ops_windows_amd64.dll
var library []byte

func init() { carry.Set(library) }
