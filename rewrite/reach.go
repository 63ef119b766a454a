package rewrite

import "fmt"

// Reach says for how many tokens the verified layers of a report are known to be equal.
type Reach struct {
	AnyLength int     // layers for which it is any number, by the formulas that the graph computes
	Limited   []Limit // the others
}

// Limit is a set of layers that are known to be equal for calls of up to so many tokens; of longer calls a sample was
// compared.
type Limit struct {
	Layers []int
	Tokens int64
	Why    string // what of the graph is no formula that is understood
}

// Reach returns it.
func (r *Report) Reach() (out Reach) {
	for i, s := range r.Sites {
		if s.Proof == nil {
			continue
		}
		e := s.Proof.Exact
		if e.AnyLength {
			out.AnyLength++
			continue
		}
		last := len(out.Limited) - 1
		if last < 0 || out.Limited[last].Tokens != e.Tokens || out.Limited[last].Why != e.Why {
			out.Limited = append(out.Limited, Limit{Tokens: e.Tokens, Why: e.Why})
			last++
		}
		out.Limited[last].Layers = append(out.Limited[last].Layers, i)
	}
	return out
}

// String says how many layers are known up to a number of tokens alone, behind how many are verified; "" for none.
func (r Reach) String() (text string) {
	layers, sampled, tokens := 0, 0, int64(0)
	for _, l := range r.Limited {
		if l.Tokens == 0 {
			sampled += len(l.Layers)
			continue
		}
		if layers == 0 || l.Tokens < tokens {
			tokens = l.Tokens
		}
		layers += len(l.Layers)
	}
	if layers > 0 {
		text = fmt.Sprintf(", %d of them up to %d tokens", layers, tokens)
	}
	if sampled > 0 {
		text += fmt.Sprintf(", %d of them on samples", sampled)
	}
	return text
}
