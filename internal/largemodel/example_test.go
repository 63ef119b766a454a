package largemodel_test

import (
	"fmt"
	"os"

	"github.com/rope-rewrite/rope-rewrite/internal/largemodel"
)

func ExampleLlama_Write() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	_, size, err := largemodel.Llama70B.Write(folder, false)
	fmt.Printf("%.0f billion numbers, %v\n", float64(size)/4e9, err)
	// Output: 71 billion numbers, <nil>
}
