package eval

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Contain puts the constants of a piece that lie in external data into the
// piece itself, which is handed on as bytes and has no folder.
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
			return fmt.Errorf("a constant of the piece cannot be read: %w", err)
		}
		piece.Graph.Initializers[i] = onnx.NewTensor(t.Name, t.Type, t.Dims, b)
	}
	return nil
}

func tooLarge(size int64) error {
	return fmt.Errorf("the piece holds %d MB of constants, more than the %d MB that are evaluated", size>>20, MaxPiece>>20)
}
