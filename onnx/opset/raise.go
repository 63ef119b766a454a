package opset

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Raised says what Raise did.
type Raised struct {
	From      int64 // version that the model's graph was written against
	To        int64
	Converted int // nodes that are written in another way now, in functions too
}

// ErrLower says that a model already uses a newer opset than was asked for.
var ErrLower = errors.New("a model is not converted to an older opset")

// Newest is the newest version that Raise can raise a model to.
func Newest() (int64, error) {
	t, err := readTable()
	if err != nil {
		return 0, err
	}
	return t.newest, nil
}

// Raise raises the version of the standard operators that the model is written against,
// and converts the nodes that this concerns: those of its graph, of the graphs inside
// nodes, and of functions of the model's own that are written against an older version.
// The version of the file format rises with it, as ONNX demands. A node that is converted
// is another *onnx.Node afterwards, with the old one's name and outputs.
//
// A model that is already written against that version is unchanged. The error is
// ErrLower for one against a newer version, or it says which node cannot be converted and
// what changed for it. After an error the model is unchanged.
func Raise(m *onnx.Model, to int64) (Raised, error) {
	t, err := readTable()
	if err != nil {
		return Raised{}, err
	}
	from, err := standardVersion(m.Opsets())
	if err != nil {
		return Raised{}, err
	}
	raised := Raised{From: from, To: to}
	switch {
	case to > t.newest:
		return raised, fmt.Errorf("opset %d is not known; the newest known is %d", to, t.newest)
	case from == 0:
		return raised, errors.New("the model does not name its opset")
	case from < t.oldest:
		return raised, fmt.Errorf("the model uses opset %d, and the oldest known is %d", from, t.oldest)
	case to < from:
		return raised, fmt.Errorf("%w: the model uses opset %d, and %d was asked for", ErrLower, from, to)
	case len(m.Training) > 0:
		return raised, errors.New("the model has graphs for training, which are not converted")
	}
	p := newPlan(m, t, to)
	if to > from {
		if err := p.graph(m.Graph, from); err != nil {
			return raised, err
		}
	}
	for _, f := range m.Functions {
		if err := p.function(f); err != nil {
			return raised, fmt.Errorf("in the function %s: %w", short.Name(f.Name), err)
		}
	}
	for _, commit := range p.commits {
		commit()
	}
	if to > from {
		m.RequireOpset("", to)
		m.RequireIR(t.formats[to])
	}
	raised.Converted = p.converted
	return raised, nil
}

// standardVersion returns the version of the standard operators among those of a list, 0
// where it has none.
func standardVersion(list []onnx.Opset) (found int64, _ error) {
	for _, o := range list {
		if !standard(o.Domain) {
			continue
		}
		if found != 0 && o.Version != found {
			return 0, fmt.Errorf("the model names two opsets, %d and %d", found, o.Version)
		}
		found = o.Version
	}
	return found, nil
}

// standard reports whether a domain is ONNX's own; it has two names.
func standard(domain string) bool { return domain == "" || domain == "ai.onnx" }

// raisedList is a list of versions with that of the standard operators raised.
func raisedList(list []onnx.Opset, to int64) []onnx.Opset {
	list = slices.Clone(list)
	for i := range list {
		if standard(list[i].Domain) {
			list[i].Version = to
		}
	}
	return list
}
