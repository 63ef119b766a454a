// Package task makes the questions of an evaluation: texts of a given length in which something
// is hidden, and what an answer must have. It knows no models and no tokens; a caller counts.
//
//	list, err := t.Samples(&task.Cell{Form: form, Length: 8192, Samples: 20, Seed: 1, Count: count})
//	score, right := t.Score(answer, list[0])
//
// The thirteen tasks of RULER (Hsieh et al., "RULER: What's the Real Context Size of Your
// Long-Context Language Models?", 2024, arXiv:2404.06654) have RULER's names and scores. Their texts
// are put together as the authors' generator does (testdata/make_ruler.py). What is drawn differs:
// words, the text of the kind essay, and the documents of questions are made here, so that
// everything may be shipped.
//
// A new task is a file and a line in the list of task.go.
//
// # What is where
//
//   - task.go: the list of tasks, what they make and how an answer is scored
//   - form.go, forms/: the texts of a prompt, which a user may replace
//   - hidden.go, pairs.go: passkey, needles, variables and kv
//   - ruler.go: what RULER's tasks share, samples that ask about one text above all
//   - niah.go, chains.go, common.go, coded.go, documents.go: RULER's tasks, a family each
//   - facts.go: invented towns, people and books, for documents
//   - essay.go, words.go: a text without facts, and words
package task
