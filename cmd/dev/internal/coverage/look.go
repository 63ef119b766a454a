package coverage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// export is what export.py noted.
type export struct {
	Architecture string         `json:"architecture"`
	Route        string         `json:"route"`
	Rotary       bool           `json:"rotary"`
	Skipped      string         `json:"skipped"`
	Approximate  bool           `json:"approximate"` // float16 or quantised: far from transformers by nature
	Difference   map[string]any `json:"difference"`  // a number, or why ONNX Runtime did not run it so

	Versions map[string]string `json:"versions"` // of the packages that made it
}

// broken says why ONNX Runtime runs the export in no way, or "".
func (e export) broken() string {
	why := ""
	for _, way := range slices.Sorted(maps.Keys(e.Difference)) {
		text, failed := e.Difference[way].(string)
		if !failed {
			return ""
		}
		why = text
	}
	return why
}

// Result is what became of one export.
type Result struct {
	Architecture string         `json:"architecture"`
	Route        string         `json:"route"`
	Rotary       bool           `json:"rotary"`            // whether the architecture turns queries and keys
	Skipped      string         `json:"skipped,omitempty"` // why there is no export
	Layers       int            `json:"sites"`
	Rewritten    int            `json:"lifted"`              // the name that earlier runs wrote
	Halves       int            `json:"halves,omitempty"`    // layers whose scores alone are
	Rotations    int            `json:"rotations,omitempty"` // layers of which a scaling changes the rotation, and all else is unchanged
	Unchanged    map[string]int `json:"kept,omitempty"`      // why the other layers are not rewritten, or not whole, and how many for each reason
	None         string         `json:"none,omitempty"`      // what is said of a model without rotation
	Error        string         `json:"error,omitempty"`     // why the rewriter ended
	Broken       string         `json:"broken,omitempty"`
	Alone        bool           `json:"alone,omitempty"`   // not run as a whole: export.py has no inputs for it
	Wrong        string         `json:"wrong,omitempty"`   // how the patched model differs
	Rounded      string         `json:"rounded,omitempty"` // where it differs by rounding alone, as both in float64 tell
	Noise        float64        `json:"noise"`             // distance of the original from transformers in float64
	Patched      float64        `json:"patched"`           // of the patched model
	Seconds      float64        `json:"seconds"`           // of finding, lifting and verifying

	Versions map[string]string `json:"versions,omitempty"` // of the packages that made the export

	Methods map[string]float64 `json:"methods,omitempty"` // distance of models patched with a method from transformers with it, in float64
}

// Look rewrites the export in a folder without a method and runs both models.
// worker is a program that calls rewrite.ServeIfWorker first: os.Args[0].
func Look(ctx context.Context, folder, worker string) Result {
	var e export
	data, err := os.ReadFile(filepath.Join(folder, "export.json"))
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	if err != nil {
		return Result{Error: err.Error()}
	}
	r := Result{Architecture: e.Architecture, Route: e.Route, Rotary: e.Rotary, Skipped: e.Skipped, Versions: e.Versions}
	if r.Skipped != "" {
		return r
	}
	r.Broken = e.broken()
	if err := r.rewrite(ctx, folder, worker, e.Approximate); err != nil {
		r.Error = err.Error()
	}
	return r
}

func (r *Result) rewrite(ctx context.Context, folder, worker string, approximate bool) error {
	path := filepath.Join(folder, "model.onnx")
	m, err := onnx.Open(path)
	if err != nil {
		return err
	}
	defer m.Close()
	report, err := rewrite.Rewrite(ctx, m, rewrite.Options{Evaluation: rewrite.Evaluation{Worker: []string{worker}}, AllowUnchanged: true})
	r.Layers, r.Rewritten, r.Seconds = len(report.Sites), report.Rewritten(), report.Seconds
	if errors.Is(err, rewrite.ErrNoAttention) {
		r.None = err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	r.Unchanged = map[string]int{}
	kept := false
	for _, s := range report.Sites {
		kept = kept || s.Status != rewrite.Rewritten
		if s.ScoresOnly {
			r.Halves++
			r.Rewritten--
		}
		if s.Status != rewrite.Rewritten || s.ScoresOnly {
			r.Unchanged[strings.TrimPrefix(s.Reason, "as in an earlier layer of the same structure, ")]++
		}
	}
	if kept && r.Broken == "" {
		if r.Rotations, err = rotations(ctx, path, worker); err != nil {
			return err
		}
	}
	if report.Rewritten() == 0 || r.Broken != "" {
		return nil
	}
	truth, err := readTruth(filepath.Join(folder, "reference.npz"))
	if errors.Is(err, fs.ErrNotExist) {
		r.Alone = true
		return nil
	}
	if err != nil {
		return err
	}
	patched, remove, err := save(m)
	if err != nil {
		return err
	}
	defer remove()
	if err := r.compare(ctx, worker, truth, path, patched, approximate); err != nil {
		return err
	}
	if r.Wrong != "" || r.Broken != "" || r.Rewritten < r.Layers || approximate || strings.Contains(r.Route, "+") {
		return nil
	}
	return r.methods(ctx, worker, path, filepath.Join(filepath.Dir(folder), r.Architecture+".methods.npz"), truth)
}

// rotations counts the layers of which a scaling changes the rotation alone, in the model's own
// nodes. It is none where the whole model is refused.
func rotations(ctx context.Context, path, worker string) (count int, err error) {
	m, err := onnx.Open(path)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	scaling, err := rope.ParseSpec(rope.ScalingAxis, "linear:factor=4,base=carried") // as one is asked for where a scaling is there already
	if err != nil {
		return 0, err
	}
	report, err := rewrite.Rewrite(ctx, m, rewrite.Options{Evaluation: rewrite.Evaluation{Worker: []string{worker}}, LayerEdits: []rewrite.LayerEdit{rewrite.AllLayers(scaling)}, Target: rewrite.PlainONNX, AllowUnchanged: true})
	if refused := (*rewrite.EditError)(nil); errors.As(err, &refused) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, s := range report.Sites {
		if s.RotationOnly && s.Status == rewrite.Rewritten {
			count++
		}
	}
	return count, nil
}

// save writes a model into a folder of its own, which remove takes away.
func save(m *onnx.Model) (path string, remove func(), err error) {
	folder, err := os.MkdirTemp("", "coverage")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(folder) }
	path = filepath.Join(folder, "model.onnx")
	if err := m.Save(path, onnx.SaveOptions{}); err != nil {
		remove()
		return "", nil, err
	}
	return path, remove, nil
}

// Line is what the terminal shows of a result.
func (r Result) Line() string {
	switch {
	case r.Skipped != "":
		return "no export: " + r.Skipped
	case r.Error != "":
		return "ERROR: " + r.Error
	case r.None != "":
		return "none: " + r.None
	}
	text := fmt.Sprintf("%d of %d", r.Rewritten, r.Layers)
	if r.Halves > 0 {
		text += fmt.Sprintf(" and the scores of %d", r.Halves)
	}
	if r.Rotations > 0 {
		text += fmt.Sprintf(" and the rotation of %d", r.Rotations)
	}
	if r.Rewritten+r.Halves > 0 && r.Broken == "" && !r.Alone {
		text += fmt.Sprintf(", off by %.1e (%.1e before)", r.Patched, r.Noise)
	}
	for _, method := range slices.Sorted(maps.Keys(r.Methods)) {
		text += fmt.Sprintf(", %.1e with %s", r.Methods[method], method)
	}
	for _, more := range []struct{ what, text string }{{"WRONG", r.Wrong}, {"by rounding", r.Rounded}, {"does not run", r.Broken}} {
		if more.text != "" {
			text += "; " + more.what + ": " + more.text
		}
	}
	for reason := range r.Unchanged {
		text += "; unchanged: " + reason
	}
	return text
}
