package definition

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// known has a line for every body that a version wrote for the test models, with the structure that it
// is for. Lines are added and never removed: models that older versions wrote keep their bodies.
//
//go:embed known.txt
var known string

// KnownFile is the file of known bodies in this package's folder.
const KnownFile = "known.txt"

// Unknown lists the functions of a model's ops that no version of rope-rewrite is known to have
// written for ops of their structure.
func Unknown(m *onnx.Model) (list []*onnx.Function) {
	for _, f := range Of(m) {
		if line := Fingerprint(m, f); line == "" || !slices.Contains(strings.Fields(known), line) {
			list = append(list, f)
		}
	}
	return list
}

// Fingerprint is the line of known.txt for a function of a model's ops; "" where no version could have
// written it.
func Fingerprint(m *onnx.Model, f *onnx.Function) string {
	var nodes []*onnx.Node
	for _, n := range ops(m) {
		if n.OpType == f.Name {
			nodes = append(nodes, n)
		}
	}
	list, err := groups(nodes, func(*onnx.Node) bool { return false })
	if err != nil || len(list) != 1 || len(f.Attributes) > 0 || f.Overload != "" ||
		!slices.Equal(f.Opsets, []onnx.Opset{{Version: m.Opset("")}}) || !legible(f) {
		return ""
	}
	// The name, the version of the operators and what attributes its nodes have are the model's.
	body := *f
	body.Name, body.Opsets, body.AttributeNames = list[0].spec().Name, nil, nil
	sum := sha256.Sum256([]byte(list[0].text() + "\n" + Text(&body)))
	return hex.EncodeToString(sum[:16])
}

// text describes a form. What a form does not have is not in it, so that a new field leaves the texts
// of older forms as they are.
func (f form) text() string {
	var list []string
	v := reflect.ValueOf(f)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			list = append(list, fmt.Sprintf("%s=%v", v.Type().Field(i).Name, v.Field(i)))
		}
	}
	return strings.Join(list, " ")
}

// legible reports whether Text says all that a function computes.
func legible(f *onnx.Function) bool {
	for _, n := range f.Nodes {
		if n.Overload != "" {
			return false
		}
		for _, a := range n.Attributes {
			switch a.Type {
			case onnx.AttrInt, onnx.AttrFloat, onnx.AttrString, onnx.AttrInts, onnx.AttrFloats:
			case onnx.AttrTensor:
				if !slices.Contains([]onnx.DataType{onnx.Int64, onnx.Int32, onnx.Bool, onnx.Float, onnx.Double}, a.Tensor.Type) {
					return false
				}
				if _, err := a.Tensor.Bytes(); err != nil {
					return false
				}
			default:
				return false
			}
		}
	}
	return true
}
