package ranges_test

import (
	"fmt"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/ranges"
)

func ExampleText() {
	fmt.Println(ranges.Text([]int{0, 1, 2, 3, 7}))
	// Output: 0-3,7
}

func TestText(t *testing.T) {
	for want, numbers := range map[string][]int{"": nil, "5": {5}, "0,2,4-5": {0, 2, 4, 5}} {
		if got := ranges.Text(numbers); got != want {
			t.Errorf("%v is %q, want %q", numbers, got, want)
		}
	}
}

func TestTogether(t *testing.T) {
	got, texts := ranges.Together([]string{"b", "a", "b", "b"}, []int{1, 3, 5, 6})
	if fmt.Sprint(got, texts) != "[b a] [1,5-6 3]" {
		t.Errorf("%v %v", got, texts)
	}
}
