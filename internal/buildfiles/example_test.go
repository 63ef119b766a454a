package buildfiles_test

import (
	"fmt"
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/buildfiles"
)

func ExamplePath() {
	fmt.Println(filepath.Base(buildfiles.Path(customop.RuntimeVariable)))
	// Output: libonnxruntime.so
}
