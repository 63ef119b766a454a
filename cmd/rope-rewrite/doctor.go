package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/modelfiles"
	"github.com/rope-rewrite/rope-rewrite/internal/version"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// diagnosis is what doctor found.
type diagnosis struct {
	OK      bool               `json:"ok"`
	Runtime foundRuntime       `json:"onnxruntime"`
	Library foundLibrary       `json:"ops_library"`
	Runs    bool               `json:"runs"`             // a model of one op runs and gives what it must
	Model   *cli.OpsVersions   `json:"model,omitempty"`  // what the model needs that was given
	Models  []*cli.OpsVersions `json:"models,omitempty"` // what those of a folder need
	Advice  []string           `json:"advice"`           // what is missing or wrong, with what to do; empty if all is well
}

type lookedAt struct {
	Where   string `json:"where"`
	Path    string `json:"path"`              // empty where nothing is
	Problem string `json:"problem,omitempty"` // why what is there cannot be used
}

type foundRuntime struct {
	Looked  []lookedAt `json:"looked"`
	Path    string     `json:"path"`
	Version string     `json:"version"` // as it says itself; empty if it does not load
}

type foundLibrary struct {
	Looked []lookedAt `json:"looked"`
	customop.LibraryInfo
}

func newDoctor(c *cli.Common) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [MODEL.onnx|FOLDER]",
		Short: "Say what is installed, whether it works, and what to do if not",
		Long: `Looks for ONNX Runtime and the op library, loads both in a process of their own,
and runs a model of one op. Given a model or a folder with models, it says what
runs these here: the op library, or a model's fallback. Exit code 0 if all is well, else 1.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return cli.Misplaced(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			worker, err := cli.Self()
			if err != nil {
				return err
			}
			d := diagnose(c, cmd.Context(), worker)
			if len(args) > 0 {
				if err := d.askAll(args[0]); err != nil {
					return err
				}
			}
			if err := c.Show(cmd, d, d.say); err != nil {
				return err
			}
			if !d.OK {
				return cli.Exit(cli.ExitFailed, cli.ErrReported)
			}
			return nil
		},
	}
	c.Prints(cmd, diagnosis{})
	return cmd
}

// diagnose looks for both libraries and tries them. The worker is the program
// that loads them; they may end it.
func diagnose(c *cli.Common, ctx context.Context, worker string) *diagnosis {
	d := &diagnosis{Advice: []string{}}
	d.Runtime.Looked = looked(customop.RuntimePlaces(c.Runtime), "--onnxruntime")
	d.Library.Looked = looked(customop.LibraryPlaces(customop.Options{Library: c.Library}), "--ops-library")
	var err error
	if d.Runtime.Path, err = customop.FindRuntime(c.Runtime); err != nil {
		d.advise(cli.BrieflyMissing(err))
	} else if eng, err := engine.NewWorker(engine.Config{Runtime: d.Runtime.Path}, worker); err != nil {
		d.advise(err)
	} else {
		d.Runtime.Version = eng.Version()
		eng.Close()
	}
	if d.Library.Path, err = customop.FindLibrary(customop.Options{Library: c.Library}); err != nil {
		d.advise(cli.BrieflyMissing(err))
	} else if d.Library.LibraryInfo, err = customop.InspectLibrary(d.Library.Path); err != nil {
		d.advise(fmt.Errorf("%w; build it with make build", err))
	} else if d.Library.SpecVersion < customop.SpecVersion {
		d.advise(fmt.Errorf("the op library knows op specifications up to %d, but this command writes %d, so some models would not run; build the library again with make build", d.Library.SpecVersion, customop.SpecVersion))
	}
	if d.Runtime.Version != "" && d.Library.Version != "" {
		if err := tryOp(ctx, worker, d.Runtime.Path, d.Library.Path); err != nil {
			d.advise(fmt.Errorf("a test model of one op does not run: %w", err))
		} else {
			d.Runs = true
		}
	}
	d.OK = len(d.Advice) == 0
	return d
}

// askAll says what runs a model here, or each one of a folder.
func (d *diagnosis) askAll(path string) (err error) {
	if !cli.IsFolder(path) {
		d.Model, err = d.ask(path)
		return err
	}
	paths, made, err := modelfiles.List(path)
	if err != nil {
		return err
	}
	for _, m := range made { // what was made here is to run here too
		paths = append(paths, m.Path)
	}
	slices.Sort(paths)
	for _, p := range paths {
		m, err := d.ask(p)
		if err != nil {
			return err
		}
		d.Models = append(d.Models, m)
	}
	return nil
}

// ask says what runs a model here.
func (d *diagnosis) ask(path string) (*cli.OpsVersions, error) {
	m := &cli.OpsVersions{LibraryInfo: d.Library.LibraryInfo, Writes: customop.SpecVersion}
	if err := m.Ask(path); err != nil {
		return nil, err
	}
	if m.Nodes > 0 && !d.Runs && m.Fallback {
		d.advise(fmt.Errorf("%s would run on its fallback, more slowly than with the op library", path))
	}
	if m.Needs > m.SpecVersion && d.Library.Version != "" {
		d.advise(fmt.Errorf("%s needs specification %d of the op, which the op library does not know; build the library again with make build", path, m.Needs))
	}
	d.OK = len(d.Advice) == 0
	return m, nil
}

func (d *diagnosis) advise(err error) { d.Advice = append(d.Advice, err.Error()) }

// looked lists places, the path that a flag gives under the flag's name.
func looked(places []customop.Place, flag string) []lookedAt {
	list := []lookedAt{}
	for i, p := range places {
		if i == 0 {
			p.Where = flag
		}
		list = append(list, lookedAt{p.Where, p.Path, p.Problem})
	}
	return list
}

// tryOp registers the library in a session and runs the op on one token, whose
// attention is its own value.
func tryOp(ctx context.Context, worker, runtime, library string) error {
	node, err := customop.RotaryAttention{Query: "query", Key: "key", Value: "value", Output: "output", NumHeads: 1, KVNumHeads: 1, Causal: 1}.Node("try")
	if err != nil {
		return err
	}
	m := onnx.New()
	m.RequireIR(8)
	m.RequireOpset("", 17)
	m.RequireOpset(customop.Domain, 1)
	m.Graph.Name = "try"
	n := onnx.NewNode(node.OpType, node.Inputs, node.Outputs)
	n.Domain = node.Domain
	for _, a := range node.Attributes {
		n.Attributes = append(n.Attributes, onnx.IntAttr(a.Name, a.Int)) // those above are integers
	}
	m.Graph.InsertNode(nil, n)
	dims := []int64{1, 1, 1, 2}
	shape := []onnx.Dim{{Value: 1}, {Value: 1}, {Value: 1}, {Value: 2}}
	feeds := map[string]engine.Tensor{}
	for i, name := range node.Inputs {
		m.Graph.AddInput(onnx.NewValueInfo(name, onnx.Float, shape...))
		feeds[name] = engine.Float32s([]float32{float32(i), 1}, dims...)
	}
	m.Graph.AddOutput(onnx.NewValueInfo("output", onnx.Float, shape...))
	model, err := m.Marshal()
	if err != nil {
		return err
	}
	eng, err := engine.NewWorker(engine.Config{Runtime: runtime, Library: library}, worker)
	if err != nil {
		return err
	}
	defer eng.Close()
	session, err := eng.Load(ctx, engine.Model{Bytes: model, Inputs: node.Inputs, Outputs: node.Outputs, Library: true})
	if err != nil {
		return err
	}
	defer session.Close()
	out, err := session.Run(ctx, feeds)
	if err != nil {
		return err
	}
	if got, want := out["output"].Values(), feeds["value"].Values(); !slices.Equal(got, want) {
		return fmt.Errorf("it gives %v instead of %v; build the op library again with make build", got, want)
	}
	return nil
}

func (d *diagnosis) say(w *cli.Writer) {
	v := version.This()
	w.Line("rope-rewrite %s for %s", v.Version, v.System)
	say := func(title string, looked []lookedAt, state string) {
		w.Line("\n%s", title)
		for i, p := range looked {
			found := p.Path
			switch {
			case found != "":
			case p.Problem != "":
				found = p.Problem
			case i == 0:
				found = "not given"
			case i == 1:
				found = "not set"
			default:
				found = "nothing"
			}
			w.Line("%s", cli.Wrap(fmt.Sprintf("  %s: %s", p.Where, found), "    "))
		}
		if state != "" {
			w.Line("  %s", state)
		}
	}
	state := ""
	if d.Runtime.Version != "" {
		state = fmt.Sprintf("loads; version %s (%s or newer is needed, tested up to %s)", d.Runtime.Version, customop.MinRuntime, customop.TestedRuntime)
	}
	say("ONNX Runtime", d.Runtime.Looked, state)
	state = ""
	if d.Library.Version != "" {
		state = fmt.Sprintf("version %s, op specifications 1 to %d", d.Library.Version, d.Library.SpecVersion)
	}
	say("Op library", d.Library.Looked, state)
	if d.Runs {
		w.Line("\nTogether\n  a model of one op runs")
	}
	models := d.Models
	if d.Model != nil {
		models = []*cli.OpsVersions{d.Model}
	}
	for _, m := range models {
		w.Line("\n%s", m.Model)
		switch {
		case m.Nodes == 0:
			w.Line("  has no op of rope-rewrite, so it needs no op library")
		case d.Runs && m.Needs <= m.SpecVersion:
			w.Line("  the op library computes its %d ops (specification %d)", m.Nodes, m.Needs)
		}
		if m.Nodes > 0 && m.Fallback {
			w.Line("%s", cli.Wrap("  has a fallback: a host without the op library still runs it, more slowly and with memory for the square of the length; customop.Require refuses such a host", "    "))
		} else if m.Nodes > 0 {
			w.Line("%s", cli.Wrap("  has no fallback: it does not run without the op library", "    "))
		}
	}
	w.Line("")
	for _, advice := range d.Advice {
		w.Line("%s", cli.Wrap("To do: "+advice, "  "))
	}
	if d.OK {
		w.Line("All is well.")
	}
}
