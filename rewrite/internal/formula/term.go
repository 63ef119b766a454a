package formula

// A term is what one element of a value is: a Form, or one of two terms by a test. Terms are shared and never changed.
type term struct {
	leaf    Form // where there is no test
	test    *test
	yes, no *term
}

// test is a question about sizes and places, or about one element of the padding mask.
type test struct {
	form  Form // is it 0 or less?
	equal bool // is it 0?
	bit   bool // is the padding mask 1 at this place of the row?
}

var (
	yes = &term{leaf: number(1)}
	no  = &term{}
)

func truth(b bool) *term {
	if b {
		return yes
	}
	return no
}

func leaf(f Form) *term { return &term{leaf: f} }

// choice is a test with the terms that it chooses between.
func choice(t test, yes, no *term) *term {
	if yes == no {
		return yes
	}
	return &term{test: &t, yes: yes, no: no}
}

// each puts of every leaf in its place. Equal parts of x stay one.
func (r *Reader) each(x *term, of func(Form) (*term, error)) (*term, error) {
	done := map[*term]*term{}
	var walk func(x *term) (*term, error)
	walk = func(x *term) (*term, error) {
		if out := done[x]; out != nil {
			return out, nil
		}
		var out *term
		var err error
		if x.test == nil {
			out, err = of(x.leaf)
		} else {
			var a, b *term
			if a, err = walk(x.yes); err != nil {
				return nil, err
			}
			if b, err = walk(x.no); err != nil {
				return nil, err
			}
			out = choice(*x.test, a, b)
		}
		if r.terms++; err == nil && r.terms > mostTerms {
			err = unread("more than %d tests", mostTerms)
		}
		done[x] = out
		return out, err
	}
	return walk(x)
}

// both is each of two terms: of is given a leaf of x and one of y.
func (r *Reader) both(x, y *term, of func(f, g Form) (*term, error)) (*term, error) {
	return r.each(x, func(f Form) (*term, error) {
		return r.each(y, func(g Form) (*term, error) { return of(f, g) })
	})
}

// mostTerms is how many terms are made at most. Exporters' masks take some hundred.
const mostTerms = 20_000

// tests yields every test of a term once.
func (x *term) tests(yield func(*test) bool) {
	seen := map[*term]bool{}
	var walk func(x *term) bool
	walk = func(x *term) bool {
		if x.test == nil || seen[x] {
			return true
		}
		seen[x] = true
		return yield(x.test) && walk(x.yes) && walk(x.no)
	}
	walk(x)
}

// at follows a term's tests to a leaf.
func (x *term) at(holds func(*test) bool) Form {
	for x.test != nil {
		if holds(x.test) {
			x = x.yes
		} else {
			x = x.no
		}
	}
	return x.leaf
}
