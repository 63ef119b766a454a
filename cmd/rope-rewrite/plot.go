package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/diagram"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/figure"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// plotting is what the plot command is asked for.
type plotting struct {
	*cli.Common
	methods   []string
	output    string
	theme     string
	theta     float64
	rotaryDim int
	trained   cli.TokenCount
	training  string
	length    cli.TokenCount
	documents string
	layer     int
	head      int
	heads     int
	text      string
	first     bool

	reaches []diagram.Reach // what the picture says in numbers
}

// figured is a picture that can be written.
type figured interface {
	Write(w io.Writer, format string, theme figure.Theme) error
}

var plotKinds = []string{"frequencies", "positions", "mask", "decay", "bias", "attention"}

func newPlot(c *cli.Common) *cobra.Command {
	p := &plotting{Common: c, trained: 8192}
	cmd := &cobra.Command{
		Use:   "plot KIND METHOD|ENCODING|MODEL -o FILE.png",
		Short: "Draw what a method does, or what a model computes",
		Long: `Draws a picture of a method (e.g. "scaling yarn:factor=4"; separate several by
semicolons), of a model, or of a model with a --method. The kinds of picture:

  frequencies  tokens per turn of each channel pair, before and after
  positions    the distance that RoPE uses for each key; with --trained how often
               each distance occurs, beside how often it did in training
  mask         which keys a query attends to, e.g. with --documents 64,64,128
  decay        the upper bound of the score by distance, before and after; or how
               an encoding weakens: rope, none, rotation-2d, randomized,
               rope-bias, linear-attention, xpos, sinusoidal or sandwich
  bias         what an encoding adds to the score by distance: alibi, t5,
               kerple-log, kerple-power or sandwich; or what a model's layer does
  attention    attention weights by distance, of a model's layer on a --text; with
               --first-token the weight on the first token by layer`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usage("plot needs a kind of picture, and a method, an encoding or a model; write e.g. plot frequencies \"scaling yarn:factor=4\" -o FILE.png")
			}
			if !slices.Contains(plotKinds, args[0]) {
				return cli.Usage("%q cannot be drawn; expected one of %s", short.Name(args[0]), strings.Join(plotKinds, ", "))
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch {
			case len(args) == 0:
				return plotKinds, cobra.ShellCompDirectiveNoFileComp
			case len(args) == 1 && args[0] == "bias":
				return diagram.Biases, cobra.ShellCompDirectiveDefault // or a model
			case len(args) == 1 && args[0] == "decay":
				return diagram.Decays, cobra.ShellCompDirectiveDefault // or a model
			}
			return nil, cobra.ShellCompDirectiveDefault // a model
		},
		RunE: func(cmd *cobra.Command, args []string) error { return p.run(cmd, args[0], args[1]) },
	}
	p.Prints(cmd, drawn{})
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&p.output, "output", "o", "", "write to `FILE.png` or FILE.svg")
	f.StringVar(&p.theme, "theme", "light", "`THEME` of the page that shows the picture: light or dark")
	f.StringArrayVar(&p.methods, "method", nil, "for a picture of a model: `METHOD`, as \"AXIS SPEC\", e.g. \"scaling yarn:factor=2\", several separated by semicolons. Repeatable.")
	f.Float64Var(&p.theta, "theta", 10000, "for a picture of a method: `BASE` of the frequencies")
	f.IntVar(&p.rotaryDim, "rotary-dim", 64, "for a picture of a method: number of rotated `CHANNELS`")
	f.Var(&p.trained, "trained-length", "trained length of the model, in `TOKENS`")
	f.StringVar(&p.training, "trained", "", "for positions: draw how often each distance occurs, and how often it did in the training texts of `FILE`, which has the number of tokens of one document in each line; mix stands for one of the trained length, two of half of it, four of a quarter, down to 64 tokens")
	f.Var(&p.length, "length", "number of `TOKENS` to draw; 0 means 2 times the trained length, 1.5 times for positions and decay, 64 for a mask, 256 for a bias, 512 for attention")
	f.StringVar(&p.documents, "documents", "", "for masks over documents: `TOKENS` of each document, separated by commas; an anchor of one token comes first")
	f.IntVar(&p.layer, "layer", 0, "`LAYER` to draw")
	f.IntVar(&p.head, "head", -1, "`HEAD` to draw; -1 means the mean over all heads")
	f.IntVar(&p.heads, "heads", 8, "for the bias of alibi and sandwich: number of `HEADS` of the model, at most 4096")
	f.StringVar(&p.text, "text", "", "for attention: run the model on the text in `FILE`")
	f.BoolVar(&p.first, "first-token", false, "for attention: draw how much weight the first token gets in each layer")
	return cmd
}

func (p *plotting) run(cmd *cobra.Command, kind, of string) error {
	switch {
	case p.output == "":
		return cli.Usage("plot needs a file to write; name it with -o FILE.png or -o FILE.svg")
	case p.theme != "light" && p.theme != "dark":
		return cli.Usage("--theme %q: expected light or dark", short.Name(p.theme))
	case p.rotaryDim < 2 || p.rotaryDim%2 != 0:
		return cli.Usage("--rotary-dim %d: expected an even number above 0", p.rotaryDim)
	case !(p.theta > 1):
		return cli.Usage("--theta %g: expected a number above 1", p.theta)
	case p.trained < 1 || p.length < 0:
		return cli.Usage("--trained-length must be above 0, and --length at least 0")
	case p.first && kind != "attention":
		return cli.Usage("--first-token is for pictures of attention; leave --first-token out")
	case p.training != "" && kind != "positions":
		return cli.Usage("--trained is for pictures of positions; leave --trained out")
	}
	format, err := figure.Format(p.output)
	if err != nil {
		return cli.Usage("-o %w", err)
	}
	var f figured
	switch kind {
	case "attention":
		f, err = p.attention(cmd, of)
	case "bias":
		f, err = p.bias(cmd, of)
	case "decay":
		f, err = p.decay(cmd.Context(), of)
	default:
		f, err = p.method(cmd.Context(), kind, of)
	}
	if err != nil {
		return err
	}
	theme := figure.Light
	if p.theme == "dark" {
		theme = figure.Dark
	}
	var b bytes.Buffer
	if err := f.Write(&b, format, theme); err != nil {
		return err
	}
	if err := os.WriteFile(p.output, b.Bytes(), 0o666); err != nil {
		return err
	}
	return p.show(cmd)
}

// bias draws what an encoding adds to scores.
func (p *plotting) bias(cmd *cobra.Command, name string) (figured, error) {
	given := cmd.Flags().Changed("heads")
	if p.length == 0 {
		p.length = 256
	}
	switch {
	case len(p.methods) > 0:
		return nil, cli.Usage("a bias is drawn without a --method; leave --method out")
	case isModel(name) && given:
		return nil, cli.Usage("--heads: a model has its own number of heads; leave --heads out")
	case isModel(name):
		a, err := p.modelAttention(cmd.Context(), name)
		if err != nil {
			return nil, err
		}
		return diagram.ModelBias(p.layer, a, int(p.length))
	case !slices.Contains(diagram.Biases, name):
		return nil, cli.Usage("the bias of %q cannot be drawn; expected one of %s%s", short.Name(name), strings.Join(diagram.Biases, ", "), suggest.Hint(name, diagram.Biases))
	case given && !diagram.PerHead(name):
		return nil, cli.Usage("--heads: the bias of %s does not depend on the number of heads; leave --heads out", name)
	case p.heads < 1 || p.heads > 4096:
		return nil, cli.Usage("--heads %d: expected a number from 1 to 4096", p.heads)
	}
	return diagram.Bias(name, p.heads, int(p.length))
}

// decay draws how an encoding weakens with the distance, or what methods change.
func (p *plotting) decay(ctx context.Context, of string) (figured, error) {
	i := slices.IndexFunc(diagram.Decays, func(name string) bool { return suggest.Same(of, name) })
	length := p.tokens("decay")
	switch {
	case i < 0 && suggest.Same(of, "learned"):
		return nil, cli.Usage("a learned table has what training found for each position; there is no decay to draw without a model")
	case i < 0 || isModel(of):
		return p.method(ctx, "decay", of)
	case len(p.methods) > 0:
		return nil, cli.Usage("the decay of an encoding is drawn without a --method; leave --method out")
	case diagram.Decays[i] == "rotation-2d" && p.rotaryDim%4 != 0:
		return nil, cli.Usage("--rotary-dim %d: rotation-2d needs a multiple of 4", p.rotaryDim)
	case diagram.Decays[i] == "randomized" && length > 1<<18:
		return nil, cli.Usage("--length %d: randomized positions are drawn for at most 256K tokens", length)
	}
	return diagram.DecayOf(diagram.Decays[i], p.rotaryDim, p.theta, length)
}

// method draws what attention computes before and after methods.
func (p *plotting) method(ctx context.Context, kind, of string) (figured, error) {
	list, err := p.attentions(ctx, kind, of)
	if err != nil {
		return nil, err
	}
	after := list[len(list)-1].Attention
	length := p.tokens(kind)
	switch kind {
	case "frequencies":
		return diagram.Wavelengths(list, int64(p.trained), int64(length))
	case "decay":
		return diagram.Decay(list, length)
	case "positions":
		if p.training != "" {
			return p.distances(list, length)
		}
		return diagram.Positions(after, length)
	}
	ids, err := p.ids(after)
	if err != nil {
		return nil, err
	}
	if p.length == 0 {
		length = 64
	}
	if ids != nil {
		length = len(ids)
	}
	return diagram.Visibility(after, ids, length)
}

// ids are the document ids of --documents, after the anchor's.
func (p *plotting) ids(a rope.Attention) ([]int64, error) {
	needed := a.Mask.Documents != rope.NoDocuments || a.Mask.Restart
	if p.documents == "" {
		if needed {
			return nil, cli.Usage("the mask depends on documents: give the tokens of each, such as --documents 64,64,128")
		}
		return nil, nil
	}
	if !needed {
		return nil, cli.Usage("--documents: the mask does not depend on documents; --method \"mask anchor\" does, for example")
	}
	ids := []int64{0}
	for i, part := range strings.Split(p.documents, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 || n > 1<<20 {
			return nil, cli.Usage("--documents %q: expected numbers of tokens above 0, separated by commas", short.Name(p.documents))
		}
		ids = append(ids, slices.Repeat([]int64{int64(i + 1)}, n)...)
	}
	return ids, nil
}

// tokens is how many are drawn. Maps of distances are drawn for less than twice the
// trained length, which STRING does not reach.
func (p *plotting) tokens(kind string) int {
	switch {
	case p.length > 0:
		return int(p.length)
	case kind == "positions" || kind == "decay":
		return int(p.trained + p.trained/2)
	}
	return 2 * int(p.trained)
}

// attentions are those to draw: before and after the methods.
func (p *plotting) attentions(ctx context.Context, kind, of string) ([]diagram.Named, error) {
	before := diagram.Named{Name: fmt.Sprintf("base %g", p.theta)}
	var methods []string
	known := rope.Context{Original: int64(p.trained), Length: int64(p.tokens(kind))}
	if isModel(of) {
		a, err := p.modelAttention(ctx, of)
		if err != nil {
			return nil, err
		}
		before, methods = diagram.Named{Name: filepath.Base(of), Attention: a}, p.methods
	} else {
		if len(p.methods) > 0 {
			return nil, cli.Usage("--method is for models; write the method instead of %q", short.Name(of))
		}
		methods = []string{of}
		pairs := p.rotaryDim / 2
		before.Attention = rope.Attention{Heads: 1, KVHeads: 1, HeadSize: p.rotaryDim, Mask: rope.Mask{Causal: true}, Encoding: rope.Encoding{Frequencies: make([]float64, pairs)}}
		for i := range pairs {
			before.Encoding.Frequencies[i] = 1 / float64(i+1) // replaced by those of the base
		}
		base := rope.Spec{Axis: rope.ScalingAxis, Name: "theta", Params: map[string]rope.Value{"rope_theta": rope.Number(p.theta)}}
		var err error
		if before.Attention, _, err = base.Apply(before.Attention, known); err != nil {
			return nil, err
		}
	}
	list := []diagram.Named{before}
	for _, method := range methods {
		var opts rewrite.Options
		if err := cli.AddMethod(&opts, method); err != nil {
			return nil, cli.Usage("%w", err)
		}
		after := diagram.Named{Name: evaluation.ShortName(method), Attention: before.Attention}
		slices.SortStableFunc(opts.Edits, rope.CompareOrder)
		known.Reachable = rope.Reachable(opts.Edits, known)
		for _, spec := range opts.Edits {
			var err error
			if after.Attention, _, err = spec.Apply(after.Attention, known); err != nil {
				return nil, err
			}
		}
		list = append(list, after)
	}
	return list, nil
}

// isModel reports whether a file is meant, not a method.
func isModel(of string) bool {
	_, err := os.Stat(of)
	return err == nil || strings.HasSuffix(of, ".onnx")
}

// modelAttention is what a layer of a model computes.
func (p *plotting) modelAttention(ctx context.Context, path string) (rope.Attention, error) {
	opts, err := p.Options()
	if err != nil {
		return rope.Attention{}, err
	}
	if opts, err = opts.FindLibraries(); err != nil {
		return rope.Attention{}, err
	}
	m, err := onnx.Open(path)
	if err != nil {
		return rope.Attention{}, err
	}
	defer m.Close()
	report, err := rewrite.Inspect(ctx, m, opts)
	if err != nil {
		return rope.Attention{}, err
	}
	if p.layer < 0 || p.layer >= len(report.Sites) {
		return rope.Attention{}, cli.Usage("--layer %d: %s has %d attention layers, from 0 on", p.layer, path, len(report.Sites))
	}
	s := report.Sites[p.layer]
	if s.Attention == nil {
		return rope.Attention{}, fmt.Errorf("layer %d of %s could not be measured: %s", p.layer, path, s.Reason)
	}
	return *s.Attention, nil
}
