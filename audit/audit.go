package audit

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/difference"
	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/internal/ranges"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// Verdict says how a claim and the graph compare.
type Verdict string

// The verdicts.
const (
	Agrees      Verdict = "agrees"
	Differs     Verdict = "differs"
	NotClaimed  Verdict = "not claimed"
	NotMeasured Verdict = "not measured" // Line.Why has the reason
)

// Line is one claim, for all layers with the same result: What is Hugging Face's key, or what it would be, Where the
// layers, for example 0-29, or "" where it concerns the whole model. Expected is the claim, "" where nothing is claimed,
// and Found what was measured, "" where nothing was.
type Line struct {
	difference.Difference
	Scope   string  `json:"scope"` // the graph inside a node that the layers stand in; "" is the model's own
	From    string  `json:"from"`  // file and key of the claim
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why"`
}

func line(what, claimed, from, measured string) Line {
	return Line{Difference: difference.Difference{What: what, Expected: claimed, Found: measured}, From: from}
}

// Report is the result of one audit.
type Report struct {
	Model    string   `json:"model"`
	Configs  []string `json:"configs"` // files that claims are from
	Lines    []Line   `json:"lines"`
	Repaired []string `json:"repaired"` // what a repair changed
	Output   string   `json:"output"`   // file written, "" if none

	Unmeasured int `json:"unmeasured"` // attention layers that could not be measured
}

// Count counts the lines with a verdict.
func (r *Report) Count(v Verdict) int {
	n := 0
	for _, l := range r.Lines {
		if l.Verdict == v {
			n++
		}
	}
	return n
}

// Options say how a model is audited.
type Options struct {
	Rewrite rewrite.Options // how it is evaluated
	Config  string          // path of config.json; "" looks beside the model and in the folder above
}

// claims are what the files beside a model say.
type claims struct {
	config modelconfig.Config
	genai  modelconfig.GenAI
}

func (o Options) claims(model string) claims {
	c := claims{config: modelconfig.Read(model, o.Rewrite.Source.FollowLinks), genai: modelconfig.ReadGenAI(model, o.Rewrite.Source.FollowLinks)}
	if o.Config != "" {
		c.config = modelconfig.ReadFile(o.Config)
	}
	c.leaveOut(fromFolder(c.genai.Path, model))
	return c
}

// fromFolder is a model's path from the folder of a configuration, the model's own folder or the one above it.
func fromFolder(config, model string) string {
	name, dir := filepath.Base(model), filepath.Dir(model)
	if filepath.Dir(config) == dir {
		return name
	}
	if full, err := filepath.Abs(dir); err == nil { // "." and ".." have no name
		dir = full
	}
	return filepath.Join(filepath.Base(dir), name)
}

// paths lists the files that were read. The error says of a model why there is none.
func (c claims) paths(model string) (paths []string, err error) {
	for _, unread := range []error{c.config.Unread, c.genai.Unread} {
		if unread != nil {
			return nil, unread
		}
	}
	for _, path := range []string{c.config.Path, c.genai.Path} {
		if path != "" {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return nil, &NoConfigError{model}
	}
	return paths, nil
}

// NoConfigError says that nothing beside a model claims anything.
type NoConfigError struct{ Model string }

func (e *NoConfigError) Error() string {
	return fmt.Sprintf("no config.json in %s or the folder above it, and no genai_config.json that names %s; give --config FILE",
		filepath.Dir(e.Model), filepath.Base(e.Model))
}

// Run audits a model. The error wraps rewrite.ErrNoAttention when it has no rotary
// attention, is a *NoConfigError when nothing is claimed, or says why the model
// could not be measured.
func Run(ctx context.Context, path string, opts Options) (*Report, error) {
	r, _, err := run(ctx, path, opts)
	return r, err
}

// subject is a model with what is claimed of it.
type subject struct {
	claims claims
	survey *Survey
}

func run(ctx context.Context, path string, opts Options) (*Report, *subject, error) {
	s := &subject{claims: opts.claims(path)}
	m, err := onnx.Open(path)
	if err != nil {
		return nil, s, err
	}
	defer m.Close()
	r, err := s.audit(ctx, m, opts.Rewrite)
	return r, s, err
}

// audit measures a model and compares it with what is claimed.
func (s *subject) audit(ctx context.Context, m *onnx.Model, opts rewrite.Options) (r *Report, err error) {
	r = &Report{Model: m.Path, Configs: []string{}, Lines: []Line{}, Repaired: []string{}}
	if r.Configs, err = s.claims.paths(m.Path); err != nil {
		return r, err
	}
	if s.survey, err = Look(ctx, m, opts); err != nil {
		return r, err
	}
	s.judge(r)
	return r, nil
}

// judge fills the lines: one for equal ones of several layers, in the order of claims.
func (s *subject) judge(r *Report) {
	var lines []Line
	var places []int
	for _, at := range s.survey.Layers {
		if at.Attention == nil || at.RotationOnly {
			r.Unmeasured++
		}
		for _, l := range s.lines(at) {
			l.Scope = at.Scope
			lines, places = append(lines, l), append(places, at.Place)
		}
	}
	lines, layers := ranges.Together(lines, places)
	order := map[string]int{}
	for i := range lines {
		l := &lines[i]
		if l.Where = layers[i]; order[l.What] == 0 {
			order[l.What] = len(order) + 1
		}
	}
	slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(order[a.What], order[b.What]) })
	r.Lines = append(lines, s.positions()...)
}
