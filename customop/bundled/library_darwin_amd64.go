//go:build bundled

package bundled

import (
	_ "embed"

	"github.com/rope-rewrite/rope-rewrite/customop/bundled/carry"
)

//go:embed librope_ops_darwin_amd64.dylib
var library []byte

func init() { carry.Set(library) }
