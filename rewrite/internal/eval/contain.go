package eval

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Contain moves the constants of a piece that are external data into the piece itself,
// which is passed on as bytes and has no folder. More than MaxPiece bytes of them are an
// error.
func Contain(piece *onnx.Model) error {
	size := int64(0)
	for i, t := range piece.Graph.Initializers {
		if _, _, _, outside := t.External(); !outside {
			continue
		}
		if size += t.ByteLen(); size > MaxPiece {
			return tooLarge(size)
		}
		b, err := t.Bytes()
		if err != nil {
			return fmt.Errorf("a constant of the part to evaluate cannot be read: %w", err)
		}
		piece.Graph.Initializers[i] = onnx.NewTensor(t.Name, t.Type, t.Dims, b)
	}
	return nil
}

// tooLarge is the error for a piece of more than MaxPiece bytes.
func tooLarge(size int64) error {
	return fmt.Errorf("the part of the graph to evaluate has %d MB of constants, above the limit of %d MB", size>>20, MaxPiece>>20)
}
