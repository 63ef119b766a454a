package engine

import (
	"bufio"
	"encoding/gob"
	"fmt"
	"io"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

type request struct {
	Config *Config  // first request only
	Load   *Model   // its Bytes follow as a blob
	Runs   []called // each has a response of its own, up to the first that fails
	ID     int      // of the session that is loaded or closed
	Close  bool
}

// called is a run of a session, whose feeds follow as blobs.
type called struct {
	ID    int
	Feeds []head
}

type response struct {
	Outputs []head
	Error   string
	Version string // of ONNX Runtime; to the first request only
}

// wire carries messages between a worker and its parent: a value by gob and
// behind it blobs of bytes as they are. Inside a gob they would be copied three
// times on their way, and the pieces of a model are what memory goes into.
type wire struct {
	in      *bufio.Reader
	out     *bufio.Writer
	decoder *gob.Decoder
	encoder *gob.Encoder
}

func newWire(in io.Reader, out io.Writer) *wire {
	w := &wire{in: bufio.NewReaderSize(in, 1<<16), out: bufio.NewWriterSize(out, 1<<16)}
	w.decoder, w.encoder = gob.NewDecoder(w.in), gob.NewEncoder(w.out)
	return w
}

// maxBlob bounds what a message can make the reader allocate.
const maxBlob = 16 << 30

func (w *wire) send(v any, blobs [][]byte) error {
	sizes := make([]int, len(blobs))
	for i, b := range blobs {
		sizes[i] = len(b)
	}
	if err := w.encoder.Encode(v); err != nil {
		return err
	}
	if err := w.encoder.Encode(sizes); err != nil {
		return err
	}
	for _, b := range blobs {
		if _, err := w.out.Write(b); err != nil {
			return err
		}
	}
	return w.out.Flush()
}

func (w *wire) receive(v any) (blobs [][]byte, err error) {
	if err := w.decoder.Decode(v); err != nil {
		return nil, err
	}
	var sizes []int
	if err := w.decoder.Decode(&sizes); err != nil {
		return nil, err
	}
	for _, n := range sizes {
		if n < 0 || n > maxBlob {
			return nil, fmt.Errorf("a message of %d bytes", n)
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(w.in, b); err != nil {
			return nil, err
		}
		blobs = append(blobs, b)
	}
	return blobs, nil
}

// head is a tensor without its data, which travels as a blob.
type head struct {
	Name string
	Type onnx.DataType
	Dims []int64
}

// pack appends the data of tensors to blobs and returns their heads.
func pack(tensors map[string]Tensor, blobs [][]byte) ([]head, [][]byte) {
	heads := make([]head, 0, len(tensors))
	for name, t := range tensors {
		heads, blobs = append(heads, head{name, t.Type, t.Dims}), append(blobs, t.Data)
	}
	return heads, blobs
}

// unpack returns tensors with the data of the first blobs, and the other blobs.
func unpack(heads []head, blobs [][]byte) (map[string]Tensor, [][]byte, error) {
	if len(heads) > len(blobs) {
		return nil, nil, fmt.Errorf("%d tensors with the data of %d", len(heads), len(blobs))
	}
	tensors := make(map[string]Tensor, len(heads))
	for i, h := range heads {
		tensors[h.Name] = Tensor{Type: h.Type, Dims: h.Dims, Data: blobs[i]}
	}
	return tensors, blobs[len(heads):], nil
}
