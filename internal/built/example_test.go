package built_test

import (
	"fmt"
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/built"
)

func ExamplePath() {
	fmt.Println(filepath.Base(built.Path(customop.RuntimeVariable)))
	// Output: libonnxruntime.so
}
