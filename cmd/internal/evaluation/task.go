package evaluation

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
)

// Trial is one question to a model.
type Trial struct {
	Task    string
	Length  int     // tokens that were asked for; the prompt and its answer have at most so many
	Depth   float64 // where in the text the answer stands, from 0 to 1
	Index   int     // of the sample in its cell
	Tokens  []int64 // the prompt
	Answers []string
	Need    int // how many of the answers must be given
	Most    int // tokens of an answer
}

// cell is what the trials of one length share.
type cell struct {
	*prompter
	form    Form
	length  int
	depths  []float64
	samples int
	seed    uint64
}

// task makes the trials of one length, those next to each other that have much in common.
type task struct {
	name   string
	about  string
	trials func(*cell) ([]Trial, error)
}

// Perplexity is the task that asks nothing: how well the model predicts a text.
const Perplexity = "perplexity"

func tasks() []task {
	return []task{
		{"passkey", "a number hidden in a meaningless text", passkey},
		{"needles", "four numbers, two of which must be found", needles},
		{"kv", "a value by its key, among many", pairs},
		{"variables", "variables that are assigned to one another", variables},
	}
}

// TaskNames are the names of all tasks.
func TaskNames() (names []string) {
	for _, t := range tasks() {
		names = append(names, t.name)
	}
	return append(names, Perplexity)
}

// taskOf is the task of a name.
func taskOf(name string) (task, error) {
	for _, t := range tasks() {
		if t.name == name {
			return t, nil
		}
	}
	return task{}, fmt.Errorf("unknown task %q%s; tasks: %s", short.Name(name), suggest.Hint(name, TaskNames()), strings.Join(TaskNames(), ", "))
}

// random draws for one sample of a task: every variant of a model gets the same.
func (c *cell) random(task string, depth float64, sample int) *rand.Rand {
	h := c.seed
	for _, b := range []byte(fmt.Sprintf("%s %d %g %d", task, c.length, depth, sample)) {
		h = (h ^ uint64(b)) * 1099511628211 // FNV-1a
	}
	return rand.New(rand.NewPCG(c.seed, h))
}

// number draws five digits, word as many letters of an alphabet as asked for.
func number(rng *rand.Rand) string { return fmt.Sprint(10000 + rng.IntN(90000)) }

func word(rng *rand.Rand, alphabet string, letters int) string {
	b := make([]byte, letters)
	for i := range b {
		b[i] = alphabet[rng.IntN(len(alphabet))]
	}
	return string(b)
}
