package rewrite

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/opset"
)

// OperatorSet says that the model was raised to a newer version of the standard operators.
type OperatorSet struct {
	From      int64 `json:"from"`
	To        int64 `json:"to"`
	Converted int   `json:"converted"` // nodes that are written in another way now
}

// raise raises the model's version of the standard operators as the options ask for, before
// anything of its graph is read: what is proven is proven of the raised graph. It returns
// nil where the model stays as it is, and a warning where that was not what was meant.
func (o Options) raise(m *onnx.Model) (*OperatorSet, []string, error) {
	if o.OperatorSet == 0 || o.inspect {
		return nil, nil, nil
	}
	raised, err := opset.Raise(m, o.OperatorSet)
	if err != nil {
		return nil, nil, &EditError{Layer: WholeModel, Err: err}
	}
	if raised.From == raised.To && raised.Converted == 0 {
		return nil, []string{fmt.Sprintf("the model is written against version %d of the standard operators already, so it was not raised", raised.To)}, nil
	}
	return &OperatorSet{From: raised.From, To: raised.To, Converted: raised.Converted}, nil, nil
}
