package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// weightsSpec is a variant's weights.json: how model.onnx.data is filled.
type weightsSpec struct {
	Bytes   int64         `json:"bytes"`
	Tensors []tensorPlace `json:"tensors"`
}

// tensorPlace is one tensor of the data file: [offset, [checkpoint names], transposed].
// Several names are joined along the last axis.
type tensorPlace struct {
	offset     int64
	names      []string
	transposed bool
}

func (p *tensorPlace) UnmarshalJSON(b []byte) error {
	parts := []any{&p.offset, &p.names, &p.transposed}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) != 3 || len(p.names) == 0 {
		return fmt.Errorf("weights.json: %s is not [offset, [names], transposed]", b)
	}
	return nil
}

func readSpec(path string) (spec weightsSpec, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return spec, err
	}
	if err := json.Unmarshal(b, &spec); err != nil {
		return spec, fmt.Errorf("%s: %w", path, err)
	}
	return spec, nil
}

// matrix is a checkpoint tensor [out, in]; a vector has one row.
type matrix struct {
	rows, columns int
	data          []float32
}

// row appends row i, or column i of a transposed matrix, to out.
func (m matrix) row(out []float32, i int, transposed bool) []float32 {
	if !transposed {
		return append(out, m.data[i*m.columns:(i+1)*m.columns]...)
	}
	for at := i; at < len(m.data); at += m.columns {
		out = append(out, m.data[at])
	}
	return out
}

// checkpoint gives tensors by the names that Hugging Face's checkpoint has.
type checkpoint struct {
	file    *ggufFile
	tensors map[string]ggufTensor
}

// ggufNames maps the part of a GGUF name behind blk.N. to the checkpoint's.
var ggufNames = map[string]string{
	"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
	"attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
	"ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
}

func newCheckpoint(file *ggufFile) *checkpoint {
	c := &checkpoint{file: file, tensors: map[string]ggufTensor{}}
	for _, t := range file.tensors {
		switch parts := strings.Split(t.name, "."); {
		case t.name == "token_embd.weight":
			c.tensors["model.embed_tokens.weight"] = t
		case t.name == "output_norm.weight":
			c.tensors["model.norm.weight"] = t
		case len(parts) == 4 && parts[0] == "blk" && ggufNames[parts[2]] != "":
			c.tensors["model.layers."+parts[1]+"."+ggufNames[parts[2]]+".weight"] = t
		}
	}
	return c
}

func (c *checkpoint) tensor(name string) (matrix, error) {
	t, ok := c.tensors[name]
	if !ok {
		return matrix{}, fmt.Errorf("the checkpoint has no tensor %s", name)
	}
	data, err := c.file.float32s(t)
	if err != nil {
		return matrix{}, err
	}
	m := matrix{t.rows, t.columns, data}
	switch {
	case strings.Contains(name, ".q_proj."):
		return m.halfSplit(int(c.file.numbers["llama.attention.head_count"]))
	case strings.Contains(name, ".k_proj."):
		return m.halfSplit(int(c.file.numbers["llama.attention.head_count_kv"]))
	}
	return m, nil
}

// halfSplit undoes the order of rows that GGUF gives q and k: there the two
// channels of a rotary pair are neighbours (2x, 2x+1), in the checkpoint they
// are half a head apart (x, x + head_size/2).
func (m matrix) halfSplit(heads int) (matrix, error) {
	if heads < 1 || m.rows%(2*heads) != 0 {
		return m, fmt.Errorf("%d rows do not make %d heads", m.rows, heads)
	}
	size := m.rows / heads
	out := make([]float32, 0, len(m.data))
	for row := range m.rows {
		head, channel := row/size, row%size
		from := head*size + channel%(size/2)*2 + channel/(size/2)
		out = m.row(out, from, false)
	}
	return matrix{m.rows, m.columns, out}, nil
}

// writeData writes the external data file that spec describes.
func writeData(out io.Writer, spec weightsSpec, source interface {
	tensor(name string) (matrix, error)
}) error {
	w := &countingWriter{w: bufio.NewWriterSize(out, 1<<20)}
	for _, p := range spec.Tensors {
		if err := w.zerosUpTo(p.offset); err != nil {
			return fmt.Errorf("tensor %s: %w", p.names[0], err)
		}
		parts := make([]matrix, len(p.names))
		rows := 0
		for i, name := range p.names {
			m, err := source.tensor(name)
			if err != nil {
				return err
			}
			n := m.rows
			if p.transposed {
				n = m.columns
			}
			if i > 0 && n != rows {
				return fmt.Errorf("tensors %s cannot be joined: %d and %d rows", strings.Join(p.names, ", "), rows, n)
			}
			parts[i], rows = m, n
		}
		var line []float32
		var raw []byte
		for i := range rows {
			line = line[:0]
			for _, m := range parts {
				line = m.row(line, i, p.transposed)
			}
			raw = raw[:0]
			for _, v := range line {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
			}
			if err := w.write(raw); err != nil {
				return err
			}
		}
	}
	if err := w.zerosUpTo(spec.Bytes); err != nil {
		return err
	}
	return w.w.Flush()
}

// countingWriter knows how much it has written.
type countingWriter struct {
	w  *bufio.Writer
	at int64
}

func (c *countingWriter) write(b []byte) error {
	n, err := c.w.Write(b)
	c.at += int64(n)
	return err
}

func (c *countingWriter) zerosUpTo(offset int64) error {
	if c.at > offset {
		return errors.New("weights.json gives offsets that overlap or go backwards")
	}
	n, err := io.CopyN(c.w, zeros{}, offset-c.at)
	c.at += n
	return err
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
