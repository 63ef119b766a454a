package onnx

import (
	"bytes"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// view is a message that is shown as a Go struct.
type view interface {
	// read fills the struct from its source and opens its children.
	read(*reader) error
	// origin is the source of the struct, nil if it came from no file.
	origin() source
	// original returns the struct as read first fills it, children unread.
	original() view
	// fields lists what the struct says, each field in its one canonical form.
	fields() []field
}

// steady is a view that sees faster than by its fields that it says what it said when
// it was read from its source, as most nodes and values of most models do.
type steady interface{ asRead() bool }

// field is one field of a view: exactly one of record, blob and child is set.
type field struct {
	num    protowire.Number
	record []byte // tag and value of a small field
	blob   []byte // contents that are not to be copied
	child  view
}

// text returns a string for a generated message, in which unset is nil.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// smallFields returns the set fields of a message.
func smallFields(msg proto.Message) []field {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(msg)
	if err != nil {
		panic("onnx: " + err.Error()) // only for missing required fields, which the schema has not
	}
	count := 0
	for rest := b; len(rest) > 0; count++ {
		_, _, n := protowire.ConsumeField(rest)
		rest = rest[n:]
	}
	out := make([]field, 0, count)
	for len(b) > 0 {
		num, _, n := protowire.ConsumeField(b)
		out = append(out, field{num: num, record: b[:n:n]})
		b = b[n:]
	}
	return out
}

// childFields returns a list of views as fields of one number.
func childFields[V view](num protowire.Number, list ...V) []field {
	out := make([]field, len(list))
	for i, v := range list {
		out[i] = field{num: num, child: v}
	}
	return out
}

// chunks is encoded data as a list of slices, most of them of the mapped file.
type chunks struct {
	parts [][]byte
	size  int64
}

func (c *chunks) add(part []byte) {
	c.parts = append(c.parts, part)
	c.size += int64(len(part))
}

// nest adds a length-delimited field.
func (c *chunks) nest(num protowire.Number, body chunks) {
	head := protowire.AppendTag(nil, num, protowire.BytesType)
	c.add(protowire.AppendVarint(head, uint64(body.size)))
	c.parts = append(c.parts, body.parts...)
	c.size += body.size
}

// item is a field that is ready to be written, with what tells whether it is
// unchanged.
type item struct {
	field
	body    chunks // of a child
	changed bool   // the child differs from its source
}

func (c *chunks) put(it item) {
	switch {
	case it.child != nil:
		c.nest(it.num, it.body)
	case it.record != nil:
		c.add(it.record)
	default:
		c.nest(it.num, chunks{parts: [][]byte{it.blob}, size: int64(len(it.blob))})
	}
}

// is reports whether it says what f said when the file was read.
func (it *item) is(f field) bool {
	switch {
	case it.num != f.num:
		return false
	case it.child != nil:
		return f.child != nil && !it.changed && slices.EqualFunc(it.child.origin(), f.child.origin(), sameSlice)
	case it.record != nil:
		return bytes.Equal(it.record, f.record)
	default:
		return f.child == nil && f.record == nil && sameSlice(it.blob, f.blob)
	}
}

// sameSlice reports whether two slices are the same memory. It stands for
// equality of contents that are too large to compare.
func sameSlice(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// encode returns the message of a view and whether it differs from its source.
//
// A message that came from a file is written by copying its records, known or
// not, except where what the view says now differs from what it said when it
// was read: those records are left out and the new ones stand in their place.
func encode(v view) (out chunks, changed bool) {
	src := v.origin()
	if s, ok := v.(steady); ok && src != nil && s.asRead() {
		return src.chunks(), false
	}
	fields := v.fields()
	now := make([]item, 0, len(fields))
	for _, f := range fields {
		it := item{field: f}
		if f.child != nil {
			it.body, it.changed = encode(f.child)
		}
		now = append(now, it)
	}
	if src == nil {
		for _, it := range now {
			out.put(it)
		}
		return out, true
	}
	was := v.original().fields()
	if !slices.EqualFunc(now, was, func(it item, f field) bool { return it.is(f) }) {
		groups := pair(was, now)
		if slices.ContainsFunc(groups, func(g *group) bool { return !g.same }) {
			return splice(src, groups), true
		}
	}
	return src.chunks(), false
}

// chunks returns the source as it is.
func (s source) chunks() (out chunks) {
	for _, piece := range s {
		out.add(piece)
	}
	return out
}
