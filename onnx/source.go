package onnx

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// ErrFormat is wrapped by errors about bytes that are not a valid ONNX model.
var ErrFormat = errors.New("not a valid ONNX model")

// source is where a view was read: the contents of its message in the mapped
// file. It has several pieces when the file gives the message in several
// pieces, which readers join. It is nil for a view that came from no file.
type source [][]byte

// record is one field of a message as it stands in a file.
type record struct {
	num  protowire.Number
	typ  protowire.Type
	all  []byte // tag and value
	body []byte // contents of a length-delimited field, else the bare value
}

// each calls f on the records of s in order.
func (s source) each(f func(record) error) error {
	for _, piece := range s {
		for at := 0; at < len(piece); {
			r, err := firstRecord(piece[at:])
			if err != nil {
				return err
			}
			at += len(r.all)
			if err := f(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func firstRecord(b []byte) (record, error) {
	num, typ, tag := protowire.ConsumeTag(b)
	if tag < 0 {
		return record{}, encodingError(tag)
	}
	n := protowire.ConsumeFieldValue(num, typ, b[tag:])
	if n < 0 {
		return record{}, encodingError(n)
	}
	r := record{num: num, typ: typ, all: b[: tag+n : tag+n], body: b[tag : tag+n : tag+n]}
	if typ == protowire.BytesType {
		r.body, _ = protowire.ConsumeBytes(r.body)
	}
	return r, nil
}

// encodingError turns protowire's negative length into a sentence.
func encodingError(code int) error {
	err := protowire.ParseError(code)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("a field reaches beyond the end; the file may be truncated")
	}
	reason := strings.TrimSpace(strings.TrimPrefix(err.Error(), "proto:"))
	return fmt.Errorf("a field is not encoded in a valid way (%s)", reason)
}

// decode reads the fields of s in small into msg by the generated code, and
// calls large on the other length-delimited fields. Others still are skipped:
// they only matter when the message is written again.
func (s source) decode(msg proto.Message, small fieldSet, large func(record) error) error {
	var buf []byte
	parts := 0
	err := s.each(func(r record) error {
		switch {
		case small.has(r.num):
			buf = append(buf, r.all...)
		case r.typ == protowire.BytesType:
			if parts++; parts > maxParts {
				return errTooMany
			}
			return large(r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(buf, msg); err != nil {
		return fmt.Errorf("a %s holds a malformed field", msg.ProtoReflect().Descriptor().Name())
	}
	return nil
}

// maxNesting bounds graphs inside graphs, so that hostile input cannot exhaust
// the stack. ONNX Runtime, with protobuf's limit of 100 nested messages,
// itself reads no more than 33.
const maxNesting = 48

// maxParts bounds the structs that are made from a file, each of which takes a
// hundred times the two bytes that an empty message needs. Real models have a
// tenth of that.
const maxParts = 1 << 20

var errTooMany = fmt.Errorf("it has more than %d nodes, attributes and values", maxParts)

// reader holds what views need to know while they are read.
type reader struct {
	folder  *folder // where external data of the tensors lies
	nesting int     // graphs around the one being read
	shallow bool    // leave the children of the first view unread
	parts   int     // views opened so far
}

// open reads a child whose source is set.
func (r *reader) open(v view) error {
	if r.shallow {
		return nil
	}
	if r.parts++; r.parts > maxParts {
		return errTooMany
	}
	return v.read(r)
}

// located is an error with the place in the model where it was met.
type located struct {
	where string
	err   error
}

func (e *located) Error() string { return e.where + ": " + e.err.Error() }
func (e *located) Unwrap() error { return e.err }

// openAt is open with the place added to an error, unless a place inside v was
// already. where is called after v was read, as far as that went.
func (r *reader) openAt(v view, where func() string) error {
	err := r.open(v)
	if err == nil || isLocated(err) {
		return err
	}
	place := where()
	if r.nesting > 1 {
		place += " of a sub-graph"
	}
	return &located{place, err}
}

func isLocated(err error) bool { return errors.As(err, new(*located)) }
