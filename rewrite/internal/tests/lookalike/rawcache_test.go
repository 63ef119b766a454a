package lookalike_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// rawCaches are models that cache keys as they come and rotate them when they are read.
func rawCaches() []lookalike {
	model := []string{"../field/raw_cache"}
	is := func(_ int, a rope.Attention) error {
		if a.Cache != rope.Raw {
			return fmt.Errorf("keys are taken for rotated ones in the cache")
		}
		return nil
	}
	kept := func(reason string) []string { return []string{reason} }
	return []lookalike{
		{name: "as it is", models: model, kept: kept(""), is: is, change: func(*patient) {}},
		{name: "larger keys in the cache", models: model, kept: kept(""), is: is, change: func(p *patient) {
			p.cachedKey(func(old string) string { return p.Op("Mul", old, p.Float(1.5)) })
		}},
		{name: "larger keys behind the cache", models: model, kept: kept(""), is: is, change: func(p *patient) {
			p.Key(func(old string) string { return p.Op("Mul", old, p.Float(1.5)) })
		}},
		{name: "keys one place further than queries", models: model, kept: kept("expected their index"), change: func(p *patient) {
			p.keyAngles(func(old string) string { return p.Op("Add", old, p.Float(1)) })
		}},
		{name: "keys rotated faster", models: model, kept: kept("per position in the query and by"), change: func(p *patient) {
			p.keyAngles(func(old string) string { return p.Op("Mul", old, p.Float(1.25)) })
		}},
		{name: "keys rotated by their distance from the end", models: model, kept: kept("expected their index"), change: func(p *patient) {
			p.keyAngles(func(old string) string {
				return p.Op("Sub", old, p.Cast(p.Op("Add", p.Past(), p.length()), onnx.Float))
			})
		}},
		{name: "cached keys rotated, new ones by their place in the call", models: model, kept: kept("differs if"), change: func(p *patient) {
			p.keyAngles(func(old string) string {
				past := p.Cast(p.Past(), onnx.Float)
				return p.Op("Where", p.Op("Less", old, past), old, p.Op("Sub", old, past))
			})
		}},
		{name: "keys rotated before they are cached, too", models: model, kept: kept("is changed before it is cached and again when it is read"), change: func(p *patient) {
			cos, sin := p.queryTables()
			p.cachedKey(func(old string) string {
				half := p.Node("Concat", []string{p.Op("Neg", p.channels(old, 8, 16)), p.channels(old, 0, 8)}, onnx.IntAttr("axis", 3))
				return p.Op("Add", p.Op("Mul", old, cos), p.Op("Mul", half, sin))
			})
		}},
		{name: "keys whose channels are put in another order behind the cache", models: model, kept: kept("are reordered when they are rotated"), change: func(p *patient) {
			p.behindCache(func(old string) string {
				return p.Node("Concat", []string{p.channels(old, 8, 16), p.channels(old, 0, 8)}, onnx.IntAttr("axis", 3))
			})
		}},
	}
}

// cachedKey changes the keys that every layer appends to its cache.
func (p *patient) cachedKey(change func(old string) string) {
	for _, s := range p.Sites {
		p.Into(s.Key.Cache.Concat, 1, change)
	}
}

// behindCache changes what is read of the key cache, not what is given away.
func (p *patient) behindCache(change func(old string) string) {
	for _, s := range p.Sites {
		p.After(s.Key.Cache.Present, change)
	}
}

// channels returns some channels of a value.
func (p *patient) channels(v string, from, to int64) string {
	return p.Op("Slice", v, p.Ints(from), p.Ints(to), p.Ints(3))
}

// length returns how many tokens a call has.
func (p *patient) length() string { return p.Size("input_ids", 1) }

// keyAngles changes the places of keys, as numbers, before they are multiplied by frequencies.
func (p *patient) keyAngles(change func(old string) string) {
	for _, s := range p.Sites {
		turned := p.Rotation(s.Key.Operand)
		angles := p.Up(turned.Cos.Inputs[1], "Cos")
		product := p.Up(angles.Inputs[0], "Mul")
		p.Into(product, 0, change)
	}
}

// queryTables returns the cosines and sines of the first layer's queries.
func (p *patient) queryTables() (cos, sin string) {
	turned := p.Rotation(p.Sites[0].Query.Operand)
	return turned.Cos.Inputs[1], turned.Sin.Inputs[1]
}
