package evaluation

import (
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
	"github.com/rope-rewrite/rope-rewrite/internal/testfuzz"
)

// FuzzForm: a prompt file is read, or refused in one line; so is a condition on what is found.
func FuzzForm(f *testing.F) {
	seeds := []string{"passkey@12K>=0.9", "perplexity@8K<=15"}
	for _, name := range task.Names() {
		if form, err := task.BuiltinForm(name); err == nil {
			seeds = append(seeds, string(form))
		}
	}
	testfuzz.Run(f, seeds, 1000, func(t testing.TB, input []byte) bool {
		oneLine := func(err error) bool {
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is not one line: %q", err)
			}
			return err == nil
		}
		_, err := task.ParseForm(input)
		read := oneLine(err)
		_, err = ParseCheck(string(input))
		return oneLine(err) || read
	})
}
