package definition

import (
	"cmp"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// form is what decides about the structure of a body. Nodes of one form share a body.
type form struct {
	flat    bool   // query, key and value are [batch, length, heads·channels]
	inputs  string // 1 for each input that is given, 0 for the others
	outputs int

	layout, cache, documents, precision               string
	exactAngles, causal, cross, shown, restart, turns bool
	axes, queryFactors, keyFactors                    bool

	ownScale, softcap, temperature bool
	byLength                       string // the attribute with the frequencies of long calls, "" without
	bands                          int
	queryScales, queryOffsets      bool
	keyScales, queryLimits, groups bool
	chunk                          bool

	slopes, buckets, distancesShown bool

	cacheType string // of caches in another type than the node's; "" without
	ring      bool   // a cache of fixed capacity is a ring

	rotary rotaryForm // of Rotary, whose rotation the fields above describe
}

// formOf returns the form of an op.
func formOf(n *onnx.Node, op customop.RotaryAttention, flat bool) form {
	f := form{
		flat: flat, outputs: len(n.Outputs),
		layout: cmp.Or(op.RotaryLayout, "half"), cache: cmp.Or(op.Cache, "rotated"), precision: cmp.Or(op.Precision, "exact"),
		exactAngles: op.ExactAngles == 1, causal: op.Causal == 1, cross: op.Cross == 1, shown: op.FirstKeysShown == 1, restart: op.DocumentRestart == 1,
		turns: len(op.Frequencies) > 0,
		axes:  len(op.PositionAxes) > 0, queryFactors: len(op.QueryFactors) > 0, keyFactors: len(op.KeyFactors) > 0,
		ownScale: op.Scale != 0, softcap: op.Softcap != 0, temperature: len(op.Temperature) > 0,
		bands:       max(1, len(op.BandStarts)),
		queryScales: len(op.BandQueryScales) > 0, queryOffsets: len(op.BandQueryOffsets) > 0,
		keyScales: len(op.BandKeyScales) > 0, queryLimits: len(op.BandQueryLimits) > 0, groups: len(op.BandGroups) > 0,
		chunk:  op.BandChunk > 0,
		slopes: len(op.DistanceSlopes) > 0, buckets: len(op.DistanceStarts) > 0, distancesShown: op.DistanceShown == 1,
	}
	f.ring = op.CacheRing == 1
	if op.CacheType != "same" {
		f.cacheType = op.CacheType
	}
	for _, v := range n.Inputs {
		if v == "" {
			f.inputs += "0"
		} else {
			f.inputs += "1"
		}
	}
	if op.DocumentIDs != "" {
		f.documents = cmp.Or(op.DocumentMask, "intra")
	}
	switch {
	case len(op.LongFrequencies) > 0:
		f.byLength = "long_frequencies"
	case op.DynamicNtk != 0:
		f.byLength = "dynamic_ntk"
	case op.DynamicLinear != 0:
		f.byLength = "dynamic_linear"
	}
	if !f.turns { // what moves positions then does nothing
		f.layout, f.exactAngles, f.byLength, f.bands = "half", false, "", 1
		f.queryScales, f.queryOffsets, f.keyScales, f.queryLimits, f.groups, f.chunk = false, false, false, false, false, false
	}
	return f
}

// given reports whether an input is given.
func (f form) given(input int) bool { return input < len(f.inputs) && f.inputs[input] == '1' }

// group is the nodes of one form.
type group struct {
	form
	nodes []*onnx.Node
	ops   []customop.RotaryAttention
}

// any reports whether an op of the group has a property.
func (g *group) any(has func(customop.RotaryAttention) bool) bool {
	return slices.ContainsFunc(g.ops, has)
}

// Read reads a node of the op, under any of its names.
func Read(n *onnx.Node) (customop.RotaryAttention, error) {
	return customop.ParseRotaryAttention(ir.ToCustom(n))
}

// readForm reads a node of any op, as what an attention of the same rotation has, and its form.
func readForm(n *onnx.Node, flat func(*onnx.Node) bool) (customop.RotaryAttention, form, error) {
	if isRotary(n) {
		return readRotary(n)
	}
	op, err := Read(n)
	if err != nil {
		return op, form{}, err
	}
	return op, formOf(n, op, flat(n)), nil
}

// groups sorts the ops of a list by their form, in the order of the list.
func groups(nodes []*onnx.Node, flat func(*onnx.Node) bool) (list []*group, err error) {
	of := map[form]*group{}
	for _, n := range nodes {
		op, f, err := readForm(n, flat)
		if err != nil {
			return nil, err
		}
		if of[f] == nil {
			of[f] = &group{form: f}
			list = append(list, of[f])
		}
		of[f].nodes, of[f].ops = append(of[f].nodes, n), append(of[f].ops, op)
	}
	return list, nil
}
