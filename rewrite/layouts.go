package rewrite

import (
	"errors"
	"fmt"
	"slices"
)

// layouts holds where elements lie in every value of a site that is fed or read.
type layouts struct {
	query, queryOperand           layout
	key, keyStored, keyOperand    layout
	value, valueStored, valueUsed layout
	output                        layout
	scores                        []extent // [batch, heads, length, total]
	sinks                         int64    // 1 where the softmax's input has a column behind the keys
	cached                        bool
	latent                        bool // keys and values are made anew of what is kept of all tokens
}

// measured lists the values whose dims must be known.
func (s *site) measured() []string {
	list := []string{s.query.cut, s.query.operand, s.key.cut, s.key.stored(), s.key.operand,
		s.value.cut, s.value.stored(), s.value.operand, s.scores(), s.softmaxInput(), s.output()}
	list = append(list, s.results()...)
	for _, b := range []branch{s.query, s.key, s.value} {
		list = append(list, b.before...)
		if b.shared != nil {
			list = append(list, b.shared.fresh)
		}
		for _, o := range b.beside {
			list = append(append(list, o.cut), o.before...)
		}
	}
	for _, b := range []branch{s.query, s.key} {
		for _, scale := range b.scales {
			list = append(list, scale.value, scale.of)
		}
	}
	return unique(append(list, s.cuts()...))
}

// lastConstant returns the last dimension if it is constant, 0 otherwise.
func lastConstant(dims []extent) int64 {
	if len(dims) == 0 || !dims[len(dims)-1].constant() {
		return 0
	}
	return dims[len(dims)-1].One
}

func (s *sizedSite) layouts(t *shapeTable) (*layouts, error) {
	for _, v := range s.measured() {
		if err := t.refused[v]; err != nil {
			return nil, refuse(s.softmax, "the shape of %q cannot be measured: %v", v, err)
		}
	}
	ly := &layouts{scores: t.dims[s.scores()], cached: s.past(), latent: s.key.shared != nil}
	if len(ly.scores) > 2 && !slices.ContainsFunc(ly.scores, func(e extent) bool { return !e.constant() }) {
		return nil, refuse(s.product, "its scores always have the shape %v: the model was exported for one batch and one length; export it with dynamic ones", ly.scores)
	}
	if len(ly.scores) != 4 || ly.scores[0] != batchExtent || !ly.scores[1].constant() ||
		ly.scores[2] != lengthExtent || ly.scores[3] != totalOf(t) {
		return nil, refuse(s.product, "its scores have the shape %v; [batch, heads, length, past + length] was expected", ly.scores)
	}
	if in := t.dims[s.softmaxInput()]; len(in) == 4 && (in[3] == extent{One: 1, L: ly.scores[3].L, P: ly.scores[3].P}) {
		ly.sinks = 1
	}
	valueChannels := lastConstant(t.dims[s.value.operand])
	if err := s.turned(ly, t); err != nil {
		return nil, err
	}
	return ly, s.recognise(t,
		place{&ly.keyOperand, s.key.operand, "transposed key", ly.query.channels},
		place{&ly.value, s.value.cut, "value", valueChannels},
		place{&ly.valueStored, s.value.stored(), "stored value", valueChannels},
		place{&ly.valueUsed, s.value.operand, "used value", valueChannels},
		place{&ly.output, s.output(), "output", valueChannels})
}

// turnedLayouts holds no more than what is fed and read to measure the rotation:
// the value may stand in one with query and key.
func (s *sizedSite) turnedLayouts(t *shapeTable) (*layouts, error) {
	ly := &layouts{cached: s.past()}
	if err := s.turned(ly, t); err != nil {
		return nil, err
	}
	channels := lastConstant(t.dims[s.value.operand])
	return ly, s.recognise(t, place{&ly.value, s.value.cut, "value", channels}, place{&ly.valueStored, s.value.stored(), "stored value", channels})
}

// turned recognises query and key before and after their rotation.
func (s *sizedSite) turned(ly *layouts, t *shapeTable) error {
	channels := lastConstant(t.dims[s.query.operand])
	if channels == 0 {
		return refuse(s.product, "the head size of its query is not constant")
	}
	if err := s.recognise(t,
		place{&ly.query, s.query.cut, "query", s.query.width(channels)},
		place{&ly.queryOperand, s.query.operand, "rotated query", channels},
		place{&ly.key, s.key.cut, "key", s.key.width(channels)},
		place{&ly.keyStored, s.key.stored(), "rotated key", channels}); err != nil {
		return err
	}
	for _, v := range []struct {
		branch branch
		into   *layout
		what   string
	}{{s.query, &ly.query, "query"}, {s.key, &ly.key, "key"}} {
		if len(v.branch.beside) == 0 {
			continue
		}
		var err error
		if *v.into, err = t.beside(v.branch, ly.queryOperand.heads); err != nil {
			return refuse(s.product, "the %s is put together of several values, which is not understood: %v", v.what, err)
		}
	}
	return nil
}

// place is a value whose axes are to be recognised.
type place struct {
	into     *layout
	name     string
	what     string
	channels int64
}

func (s *sizedSite) recognise(t *shapeTable, places ...place) error {
	for _, v := range places {
		dims, ok := t.dims[v.name]
		if !ok {
			return refuse(s.product, "the shape of its %s (%q) does not follow from batch, length and past", v.what, v.name)
		}
		var err error
		if *v.into, err = layoutOf(dims, v.channels); err != nil {
			return refuse(s.product, "the %s (%q) has an unexpected shape: %v", v.what, v.name, err)
		}
	}
	return nil
}

// totalOf is the number of keys a query may see.
func totalOf(t *shapeTable) extent {
	if t.past {
		return totalExtent
	}
	return lengthExtent
}

// maxWidth bounds heads · channels; the largest models have some 20,000.
const maxWidth = 1 << 18

func (ly *layouts) check() error {
	heads := ly.scores[1].One
	if slices.Contains(ly.output.axes, unitAxis) {
		return errors.New("the output has a dimension of one element beside heads and channels")
	}
	for _, v := range []struct {
		what     string
		layout   layout
		heads    int64
		channels int64
	}{
		{"query", ly.query, heads, ly.queryOperand.channels},
		{"rotated query", ly.queryOperand, heads, ly.query.channels},
		{"rotated key", ly.keyStored, 0, ly.query.channels},
		{"key", ly.key, 0, ly.query.channels},
		{"output", ly.output, heads, ly.value.channels},
	} {
		if v.heads != 0 && v.layout.heads != v.heads {
			return fmt.Errorf("the %s has %d heads, the scores have %d", v.what, v.layout.heads, v.heads)
		}
		if v.layout.channels != v.channels {
			return fmt.Errorf("the %s has %d channels per head, %d were expected", v.what, v.layout.channels, v.channels)
		}
	}
	if width := saturated(heads, max(ly.query.channels, ly.value.channels)); width > maxWidth {
		return fmt.Errorf("%d heads of %d channels are more than the %d channels that are evaluated", heads, ly.query.channels, maxWidth)
	}
	if rows := ly.value.rows; rows != lengthExtent && !(ly.latent && rows == totalExtent) {
		return fmt.Errorf("the value has %v tokens, %v were expected", rows, lengthExtent)
	}
	if ly.key.heads != ly.value.heads {
		return fmt.Errorf("the key has %d heads, the value %d", ly.key.heads, ly.value.heads)
	}
	if ly.key.heads < 1 || heads%ly.key.heads != 0 {
		return fmt.Errorf("%d query heads are not a multiple of %d key heads", heads, ly.key.heads)
	}
	return nil
}
