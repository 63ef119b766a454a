package earlier

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lastlogits"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Undo gives the graph the inputs and outputs back that it had before the earlier rewrite. The ops are
// replaced later.
func (e *Rewrite) Undo(m *onnx.Model) error {
	if e.HoldsOps() {
		for _, name := range e.Record.AddedInputs {
			m.Graph.RemoveInput(name)
		}
		for _, name := range e.Record.AddedOutputs {
			m.Graph.RemoveOutput(name)
		}
		for _, b := range e.Record.Buffers {
			chosen := func(name string) bool { return slices.Contains(b.Values, name) }
			ir.ResizeCaches(m.Graph, func(name string) (onnx.Dim, bool) { return b.Dim(), chosen(name) })
			if t, known := b.TypeOf(); known {
				ir.RetypeCaches(m.Graph, chosen, t)
			}
		}
	}
	return e.undoLogits(m)
}

// Frees reports whether Undo takes an input of that name out of the model.
func (e *Rewrite) Frees(name string) bool {
	return e != nil && e.Record != nil && slices.Contains(e.Record.AddedInputs, name)
}

// placesLogits reports whether an added input says of which tokens the logits are.
func (e *Rewrite) placesLogits(input string) bool {
	return slices.ContainsFunc(e.Record.Edits, func(d provenance.Edit) bool {
		return d.What == "logits" && d.Setting("input").String() == input
	})
}

// undoLogits gives the model the logits of all tokens back, where an earlier rewrite left
// those of one.
func (e *Rewrite) undoLogits(m *onnx.Model) error {
	for _, d := range e.Record.Edits {
		if d.What != "logits" {
			continue
		}
		tokens := onnx.Dim{Value: d.Setting("tokens").Integer()}
		if name := d.Setting("tokens"); name.Kind() == rope.Word {
			tokens = onnx.Dim{Param: name.String()}
		}
		if d.Setting("output").Kind() != rope.Word {
			return errors.New("the model's record does not say which output has the logits; start from the original file")
		}
		return lastlogits.Undo(m, d.Setting("input").String(), d.Setting("output").String(), tokens)
	}
	return nil
}

// Unchanged returns what the earlier rewrite says of a layer that it left unchanged.
func (e *Rewrite) Unchanged(layer int) provenance.Kept {
	for _, k := range e.Record.Kept {
		if k.Layer == layer {
			k.Reason = "the earlier rewrite left it unchanged: " + k.Reason
			return k
		}
	}
	return provenance.Kept{Layer: layer, Reason: "the model's record does not mention it"}
}

// Fill adds to what a caller said of the model what the earlier rewrite knew of it.
func (e *Rewrite) Fill(known rope.Context) rope.Context {
	c := e.Record.Configuration
	return modelconfig.Config{Original: c.Trained, Theta: c.Theta}.Fill(known)
}

// Site returns what the record says of a site written in the model's own nodes; nil if it says
// nothing.
func (e *Rewrite) Site(layer int, node string) *provenance.Site {
	for i, r := range e.Record.Sites {
		if at := slices.Index(r.Layers, layer); at >= 0 && r.Nodes[at] == node {
			return &e.Record.Sites[i]
		}
	}
	return nil
}

// LeftOut warns of methods of the earlier rewrite that this one drops.
func (e *Rewrite) LeftOut(now []string) string {
	var texts []string
	for _, d := range e.Record.Edits {
		if d.What == "precision" || d.What == "fallback" || d.What == "angles" {
			continue // they stay, or come with a method, or others were asked for; a fallback changes no output
		}
		if !slices.Contains(now, d.String()) {
			texts = append(texts, d.String())
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return fmt.Sprintf("this rewrite removes the earlier methods: %s. Give them again to keep them, or add --base carried", strings.Join(ir.Unique(texts), ", "))
}
