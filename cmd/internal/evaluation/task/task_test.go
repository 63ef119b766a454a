package task

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// letters counts them: a tokenizer that has a token for each.
func letters(p Prompt) (int, error) { return utf8.RuneCountInString(p.Text + "\n" + p.Answer), nil }

// cellOf is a cell of a task's own form.
func cellOf(t *testing.T, of Task, length int) Cell {
	t.Helper()
	form, err := of.Form(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	return Cell{Form: form, Length: length, Depths: []float64{0.1, 0.9}, Samples: 12, Seed: 3, Count: letters}
}

// A prompt fills its length, its answers stand in it where they should, the model is not told them behind the
// haystack, and what a task says of an answer follows from these.
func TestSamples(t *testing.T) {
	for _, of := range Tasks() {
		t.Run(of.Name, func(t *testing.T) {
			const length = 12000
			c := cellOf(t, of, length)
			samples, err := of.Samples(c)
			if err != nil {
				t.Fatal(err)
			}
			want := 24
			if of.Ruler {
				want = 12 // no depths
			}
			if len(samples) != want {
				t.Errorf("%d samples, want %d", len(samples), want)
			}
			different, indexes := map[string]bool{}, map[[2]float64]bool{}
			for _, x := range samples {
				n, _ := letters(x.Prompt)
				if n += c.Form.Tokens; n > length || n < length-700 {
					t.Errorf("a prompt with its answer has %d tokens, want a few less than %d", n, length)
				}
				different[x.Text+x.Answer], indexes[[2]float64{x.Depth, float64(x.Index)}] = true, true
				question, _, _ := strings.Cut(c.Form.Question, "{")
				asked := strings.LastIndex(x.Text, question)
				if len(x.Answers) == 0 || asked < 0 {
					t.Fatalf("%d answers, the question stands at %d", len(x.Answers), asked)
				}
				for _, a := range x.Answers {
					if strings.Contains(x.Text[asked:], a) {
						t.Errorf("the question tells the answer %s: %q", a, x.Text[asked:])
					}
					if !strings.Contains(x.Text[:asked], a) {
						t.Errorf("%s is not hidden", a)
					}
				}
				if !of.Ruler {
					before, at := len(c.Form.Before), strings.Index(x.Text, x.Answers[0])
					if share := float64(at-before) / float64(asked-before); share < x.Depth-0.12 || share > x.Depth+0.12 {
						t.Errorf("the answer stands at %.2f, want %.2f", share, x.Depth)
					}
				}
				if (x.Group > 0) != of.Ruler {
					t.Errorf("the text has number %d", x.Group)
				}
				none, nothing := of.Score("?", x)
				whole, right := of.Score(strings.Join(x.Answers[:x.Need], " "), x)
				if none != 0 || nothing || whole != 1 || !right {
					t.Errorf("of %v %d are needed, and that is not what is found", x.Answers, x.Need)
				}
			}
			if len(different) != len(samples) || len(indexes) != len(samples) {
				t.Errorf("%d prompts and %d numbers are different of %d", len(different), len(indexes), len(samples))
			}
			texts := func(list []Sample) (texts []string) {
				for _, s := range list {
					texts = append(texts, s.Text)
				}
				return texts
			}
			again, err := of.Samples(c)
			if err != nil || !slices.Equal(texts(again), texts(samples)) {
				t.Errorf("the same seed draws other samples, %v", err)
			}
			c.Seed++
			again, err = of.Samples(c)
			if err != nil || slices.Equal(texts(again), texts(samples)) {
				t.Errorf("another seed draws the same samples, %v", err)
			}
			c.Length = 30
			if _, err := of.Samples(c); err == nil || !strings.Contains(err.Error(), "30 tokens are too few") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestParseForm(t *testing.T) {
	for text, want := range map[string]string{
		"needle: '{key}'\nquestion: '?'\ntokens: 5\n":                       "",
		"needle: '{key}'\nquestion: '?'\n":                                  "tokens:",
		"needle: 'key'\nquestion: '?'\ntokens: 5\n":                         "needle:",
		"needle: '{key}'\ntokens: 5\n":                                      "question:",
		"needle: '{key}'\nquestion: '?'\ntokens: 5\nshare: -1\n":            "share,",
		"needle: '{key}'\nquestion: '?'\ntokens: 5\noften: 1000000\n":       "above 10000",
		"needle: '{key}'\nquestion: '?'\ntokens: 5\nneed: 2\n":              "need:",
		"needle: '{key}'\nquestion: '?'\ntokens: 5\nneedels: 2\n":           "line 4",
		"needle: '{key}\nquestion: '?'\ntokens: 5\n":                        "cannot be read",
		"needle: '{key}'\nquestion: '?'\ntokens: 5\nneedles: 3\nneed: -1\n": "need:",
	} {
		_, err := ParseForm([]byte(text))
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A form decides how many samples share a text.
func TestShare(t *testing.T) {
	for _, name := range []string{"niah_single_2", "niah_multiquery", "vt", "qa_2"} {
		of, err := Of(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, share := range []int{1, 3} {
			c := cellOf(t, of, 6000)
			c.Samples, c.Form.Share = 7, share
			samples, err := of.Samples(c)
			if err != nil {
				t.Fatal(err)
			}
			texts := map[int]int{}
			for i, s := range samples {
				texts[s.Group]++
				if i > 0 && s.Group != samples[i-1].Group && texts[s.Group] > 1 {
					t.Errorf("%s: the samples of text %d are not adjacent", name, s.Group)
				}
			}
			if want := (7 + share - 1) / share; len(texts) != want {
				t.Errorf("%s: %d texts for 7 samples, want %d", name, len(texts), want)
			}
		}
	}
}

func TestExpand(t *testing.T) {
	if got := strings.Join(Expand([]string{"passkey", "ruler", "vt"}), " "); !strings.HasPrefix(got, "passkey niah_single_1 ") || strings.Count(got, "vt") != 1 || strings.Count(got, " ") != 13 {
		t.Error(got)
	}
}

// A frequent word that is asked for must come more often than the next: no text is long enough for that here.
func TestCodedTooRare(t *testing.T) {
	of, err := Of("fwe")
	if err != nil {
		t.Fatal(err)
	}
	c := cellOf(t, of, 2000)
	c.Form.Alpha = 30
	if _, err := of.Samples(c); err == nil || !strings.Contains(err.Error(), "2000 tokens are too few") {
		t.Errorf("%v", err)
	}
	c.Form.Alpha = 1
	if _, err := of.Samples(c); err == nil || !strings.Contains(err.Error(), "alpha: expected a number above 1") {
		t.Errorf("%v", err)
	}
}

// Texts of one needle stand in the order in which what is before it can be shared.
func TestSinglesShareWhatIsBefore(t *testing.T) {
	of, err := Of("niah_single_1")
	if err != nil {
		t.Fatal(err)
	}
	samples, err := of.Samples(cellOf(t, of, 6000))
	if err != nil {
		t.Fatal(err)
	}
	shared, whole := 0, 0
	for i, s := range samples[1:] {
		before := samples[i].Text
		n := 0
		for n < min(len(s.Text), len(before)) && s.Text[n] == before[n] {
			n++
		}
		shared, whole = shared+n, whole+len(s.Text)
	}
	if shared < whole*35/100 {
		t.Errorf("%d letters of %d are shared", shared, whole)
	}
}
