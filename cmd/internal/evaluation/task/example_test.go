package task_test

import (
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
)

// Two samples of a text: an answer has the score of what it names.
func Example() {
	t, err := task.Of("niah_multikey_1")
	if err != nil {
		fmt.Println(err)
		return
	}
	form, err := t.Form(nil, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	words := func(p task.Prompt) (int, error) { return len(strings.Fields(p.Text + p.Answer)), nil } // the caller's tokens
	samples, err := t.Samples(task.Cell{Form: form, Length: 1000, Samples: 2, Seed: 1, Count: words})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, b := samples[0], samples[1]
	fmt.Println("texts", a.Group, "and", b.Group)
	fmt.Println(a.Text[strings.LastIndex(a.Text, "\n")+1:])
	fmt.Println(a.Prompt.Answer)
	score, right := t.Score(" "+a.Answers[0]+".", a)
	fmt.Println(score, right)
	score, right = t.Score(" "+b.Answers[0]+".", a)
	fmt.Println(score, right)
	// Output:
	// texts 1 and 1
	// What is the special magic number for common-rock mentioned in the provided text?
	// One of the special magic numbers for common-rock is:
	// 1 true
	// 0 false
}
