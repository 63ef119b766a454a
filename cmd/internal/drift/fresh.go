package drift

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// usualSpread is the standard deviation of a new model's weights where config.json names none.
const usualSpread = 0.02

// Spread is the standard deviation that a model's weights had when its training began, as config.json
// beside it says.
func Spread(model string) (float64, error) {
	path := filepath.Join(filepath.Dir(model), "config.json")
	b, err := configfile.ReadBeside(path, configfile.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return usualSpread, nil
	}
	if err != nil {
		return 0, err
	}
	config := struct {
		Range float64 `json:"initializer_range"`
	}{usualSpread}
	if err := json.Unmarshal(b, &config); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	if !(config.Range > 0) {
		return 0, fmt.Errorf("%s: initializer_range %g; expected a number above 0", path, config.Range)
	}
	return config.Range, nil
}

// freshen gives a model the weights that training begins with: matrices of normal numbers, norms that multiply by
// one, biases of zero. What a weight is for is seen from the node that reads it.
func freshen(m *onnx.Model, spread float64) error {
	const matrix, ones, zeros = "matrix", "ones", "zeros"
	role := map[string]string{}
	for _, n := range m.Graph.Nodes {
		for i, name := range n.Inputs {
			switch n.OpType {
			case "MatMul", "Gemm", "Gather", "Transpose":
				role[name] = matrix
				if n.OpType == "Gemm" && i == 2 {
					role[name] = zeros
				}
			case "Mul", "SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization", "LayerNormalization", "SkipLayerNormalization", "RMSNormalization":
				role[name] = ones
				if i >= 2 && n.OpType == "LayerNormalization" || i >= 3 && n.OpType == "SkipLayerNormalization" {
					role[name] = zeros
				}
			case "Add":
				role[name] = zeros
			}
		}
	}
	rng := rand.New(rand.NewPCG(23, 0))
	matrices := 0
	for i, t := range m.Graph.Initializers {
		count := 1
		for _, d := range t.Dims {
			count *= int(d)
		}
		is, vector := role[t.Name], len(t.Dims) == 1
		if t.Type != onnx.Float || count < 2 || is == "" || vector == (is == matrix) {
			continue
		}
		raw := make([]byte, 4*count)
		for j := range count {
			value := 0.0
			switch is {
			case matrix:
				value = spread * rng.NormFloat64()
			case ones:
				value = 1
			}
			binary.LittleEndian.PutUint32(raw[4*j:], math.Float32bits(float32(value)))
		}
		if is == matrix {
			matrices++
		}
		m.Graph.Initializers[i] = onnx.NewTensor(t.Name, onnx.Float, t.Dims, raw)
	}
	if matrices < 2 {
		return errors.New("the model has no float32 weights to replace by random ones; leave --control out")
	}
	return nil
}
