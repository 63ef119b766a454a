package plan

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/analysis"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plainonnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// A method changes values inside an attention layer. The op gives its output and its caches, and nothing else: a
// model that also reads the rotated keys, the scores or the probabilities would read what the original computed.
// So a value that a method changes may be read by the layers that are changed alone, or the layer is left as it is.
// What reads it, and what for, is not asked. Sizes may be read; and without a method no value changes.

// LeaveUnchanged leaves the sites as they are of which a value that the methods change is read elsewhere, unless
// something else can stand in their place. A layer that is left reads as any other node does, so the rest is looked at again.
func (p *Plan) LeaveUnchanged(m *onnx.Model, a *analysis.Analysis, instead func(*Site, error) bool) {
	if a.Again {
		return // the model's own nodes are gone
	}
	r := readersIn(m, a.Scopes)
	for again := true; again; {
		again = false
		o := p.outside(r)
		p.Sites = slices.DeleteFunc(p.Sites, func(s *Site) bool {
			why := o.of(s)
			if why == nil {
				return false
			}
			again = true
			if instead(s, why) {
				return false
			}
			a.Sites[s.Layer].ReadOutside(why)
			return true
		})
	}
}

// others looks for readers of values that the methods change.
type others struct {
	*readers
	sites  []*Site
	own    map[*onnx.Node]bool // of sites in whose place new nodes stand
	given  map[value]bool      // by these nodes
	enters map[value]bool      // what these nodes read
}

func (p *Plan) outside(r *readers) *others {
	o := &others{readers: r, sites: p.Sites, own: map[*onnx.Node]bool{}, given: map[value]bool{}, enters: map[value]bool{}}
	for _, s := range p.Sites {
		if s.Form == lower.OwnNodes {
			continue
		}
		maps.Copy(o.own, s.Site.Own())
		for _, v := range s.Site.Results() {
			o.given[r.at(s.Scope, v)] = true
		}
		for _, v := range s.Site.Boundaries() {
			o.enters[r.at(s.Scope, v)] = true
		}
	}
	return o
}

// of returns an error that says which value of a site is read elsewhere though the methods change it.
func (o *others) of(s *Site) error {
	c, turned, kept := s.changes(), "", ""
	switch {
	case s.Form == lower.OwnNodes:
		turned, kept = o.turned(s, c), cmp.Or(o.maskedScores(s, c), o.mask(s, c))
	case s.Measured.Rotated != nil:
		turned, kept = o.turned(s, c), o.tables(s, c)
	default:
		kept = cmp.Or(o.inside(s, c), o.tables(s, c), o.mask(s, c))
	}
	switch {
	case turned != "":
		return fmt.Errorf("%s, beside the scores of query and key, and this method would rotate it in another way; without the method it can be rewritten", turned)
	case kept != "":
		return fmt.Errorf("%s, and would keep the original's numbers, which this method changes; without the method it can be rewritten", kept)
	}
	return nil
}

// changes is what methods change of a site.
type changes struct {
	turning bool // how query and key are rotated, scaled or placed
	mask    bool // which keys are seen, or a bias by distance
	cache   bool // whether keys are cached before or after their rotation
}

func (s *Site) changes() (c changes) {
	have, want := s.Measured.Attention, s.Want
	c.mask = have.Mask != want.Mask || !reflect.DeepEqual(have.Distance, want.Distance)
	c.cache = have.Cache != want.Cache && s.Measured.Layouts.Cached
	restart := have.Mask.Restart != want.Mask.Restart || have.Mask.Start != want.Mask.Start
	have.Mask, have.Distance, have.Cache = want.Mask, want.Distance, want.Cache
	have.Encoding.ExactAngles = want.Encoding.ExactAngles // rounding
	c.turning = restart || !reflect.DeepEqual(have, want)
	return c
}

// inside is for a site in whose place new nodes stand: they give its results, and all else stays what it was.
func (o *others) inside(s *Site, c changes) string {
	changed, cached := map[string]bool{}, map[string]bool{}
	if u := s.Site.Key.Update(); u != nil {
		cached[u.NewRows], cached[u.Present] = true, true
	}
	if c.turning {
		maps.Copy(changed, s.before(s.Site.Query.Operand, s.Site.Key.Operand))
		for v := range cached {
			if changed[v] = true; s.Measured.Attention.Cache == rope.Raw {
				delete(changed, v)
			}
		}
	}
	if c.turning || c.mask {
		maps.Copy(changed, s.masked())
	}
	into := func(does reach) walk {
		return walk{o.readers, func(v value) bool { return o.given[v] }, o.given, func(v value, n *onnx.Node) reach {
			if !o.own[n] || o.enters[v] {
				return outside
			}
			return does
		}}
	}
	why := into(passes).from(o.values(s, changed))
	if why == "" && c.cache { // what is made of cached keys stays what it was
		why = into(ends).from(o.values(s, cached))
	}
	return why
}

// turned is for a site whose own nodes compute its scores, of query and key that are rotated anew. These may be read on the
// way to scores alone, of this site or of one that is changed alike: what is made of such scores, and of the model's outputs, is
// new as well. Where keys are no longer cached as they were, the new ones may go into the cache alone.
func (o *others) turned(s *Site, c changes) string {
	if !c.turning {
		return ""
	}
	products, scores, last := map[*onnx.Node]bool{}, map[*onnx.Node]bool{}, map[*onnx.Node]bool{}
	for _, other := range o.sites {
		if (other.Form == lower.OwnNodes || other.Measured.Rotated != nil) && reflect.DeepEqual(other.Want.Encoding, s.Want.Encoding) {
			g := other.Scope.View
			readInto(g, products, other.Site.ScoresMatMul)
			readInto(g, scores, other.Site.Softmax)
			last[g.AsWritten(other.Site.ScoresMatMul)], last[g.AsWritten(other.Site.Softmax)] = true, true
		}
	}
	from, rows := map[string]bool{s.Site.Query.Operand: true, s.Site.Key.Rotated(): true}, value{}
	if u := s.Site.Key.Update(); u != nil {
		from[u.Present] = true
		if c.cache {
			rows = o.at(s.Scope, u.NewRows)
		}
	}
	return walk{o.readers, func(v value) bool { return v != rows }, nil, func(v value, n *onnx.Node) reach {
		g := o.views[n]
		if g == nil || v == rows && n != g.AsWritten(s.Site.Key.Update().Concat) {
			return outside
		}
		does := passes
		for _, m := range g.Consumers[v.name] {
			switch {
			case g.AsWritten(m) != n || ir.Standard(m, "Shape", "Size"):
			case !scores[m]:
				return outside
			case !products[m] || last[n]:
				does = ends
			}
		}
		return does
	}}.from(o.values(s, from))
}

// readInto notes a node and what it is computed from, as far as hidden states go.
func readInto(g *graph.Graph, into map[*onnx.Node]bool, n *onnx.Node) {
	into[n] = true
	g.Upstream(n.Inputs, func(v string, made *onnx.Node) []string {
		if made == nil || !g.IsData(v) || g.WeightProduct(made) {
			return nil
		}
		into[made] = true
		return ir.Reads(made)
	})
}

// maskedScores is for a site before whose own softmax keys are hidden: what else reads its scores does not see that.
func (o *others) maskedScores(s *Site, c changes) string {
	if !c.mask {
		return ""
	}
	changed, scores := s.masked(), map[*onnx.Node]bool{}
	delete(changed, s.Site.Softmax.Outputs[0])
	readInto(s.Scope.View, scores, s.Site.Softmax)
	return walk{o.readers, never, nil, func(_ value, n *onnx.Node) reach {
		if scores[n] {
			return ends
		}
		return outside
	}}.from(o.values(s, changed))
}

// tables is for a site that is rotated by other angles, frequencies or tables than the model has: what else reads
// the model's own would go by the old ones.
func (o *others) tables(s *Site, c changes) string {
	if !c.turning {
		return ""
	}
	g, angles, constants := s.Scope.View, map[string]bool{}, map[string]bool{}
	for v := range s.before(s.Site.Query.Operand, s.Site.Key.Operand) {
		for _, x := range g.Producer[v].Inputs {
			if g.IsData(x) {
				continue
			}
			angles[x] = g.Classes[x] != graph.ConstantClass && ir.IsFloat(g.Element(x))
			g.Upstream([]string{x}, func(v string, n *onnx.Node) []string {
				if t := g.Constants[v]; t != nil && plainonnx.Rotates(t, s.Measured.Attention.Encoding) {
					constants[v] = true
				}
				if n == nil {
					return nil
				}
				return ir.Reads(n)
			})
		}
	}
	if len(constants) == 0 {
		constants = angles
	}
	return o.intoLayers(o.values(s, constants))
}

// mask is for a site that is to see other keys: what else reads the model's mask, or its bias by distance, would go by the
// old one. A mask is what is combined with scores, and what one value alone is made into that.
func (o *others) mask(s *Site, c changes) string {
	if !c.mask {
		return ""
	}
	g, masks := s.Scope.View, map[string]bool{}
	of := func(n *onnx.Node) (values []string) {
		for _, x := range n.Inputs {
			decides := ir.IsFloat(g.Element(x)) || g.Element(x) == onnx.Bool
			if x != "" && !g.IsData(x) && g.Classes[x] != graph.ConstantClass && g.Inputs[x] == nil && decides {
				values = append(values, x)
			}
		}
		return values
	}
	for v := range s.masked() {
		for _, x := range of(g.Producer[v]) {
			for next := []string{x}; len(next) == 1 && !masks[next[0]]; {
				masks[next[0]] = true
				n := g.Producer[next[0]]
				if !ir.Standard(n, "Where", "Not", "Cast", "Expand", "Slice", "Identity", "Add", "Sub", "Mul", "Neg") {
					break
				}
				next = of(n)
			}
		}
	}
	return o.intoLayers(o.values(s, masks))
}

// before lists the values that some are computed from within the site, and these.
func (s *Site) before(values ...string) map[string]bool {
	g, entering, list := s.Scope.View, s.Site.Boundaries(), map[string]bool{}
	g.Upstream(values, func(v string, n *onnx.Node) []string {
		if n == nil || slices.Contains(entering, v) || !g.IsData(v) {
			return nil
		}
		list[v] = true
		return ir.Reads(n)
	})
	return list
}

// masked lists the values that the site's mask changes: those between the product of query and key and the softmax, and its probabilities.
func (s *Site) masked() map[string]bool {
	list := s.before(s.Site.Softmax.Outputs[0])
	for v := range s.before(s.Site.Scores()) {
		delete(list, v)
	}
	return list
}

// values are those that names mean in a site's graph.
func (o *others) values(s *Site, names map[string]bool) (list []value) {
	for name, is := range names {
		if is && name != "" {
			list = append(list, o.at(s.Scope, name))
		}
	}
	return list
}
