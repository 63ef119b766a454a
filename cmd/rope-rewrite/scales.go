package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cachescales"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// scalesCommand measures the fixed scales of caches of int8.
type scalesCommand struct {
	*cli.Common
	output     string
	text, npz  string
	length     cli.TokenCount
	texts      int
	perChannel bool
	force      bool
	limits     cli.Limits
}

func newScales(c *cli.Common) *cobra.Command {
	s := &scalesCommand{Common: c, length: 512, texts: 1}
	cmd := &cobra.Command{
		Use:   "scales MODEL.onnx --text FILE -o OUT.json",
		Short: "Measure the fixed scales of int8 caches, for --kv-scales",
		Long: `Runs the model on a text and writes a file of scales for its key-value caches:
the largest magnitude that each layer's keys and values have there, divided by
127. rope-rewrite --target contrib --kv growing:type=int8 --kv-scales FILE reads
it. Larger numbers, of other texts, are cut off at the largest, so take text of
the kind that the model will be used for.

A method changes the keys: measure a model that has it.`,
		Args: cli.OneModel,
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd, args[0]) },
	}
	s.Prints(cmd, measuredScales{})
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&s.output, "output", "o", "", "write the scales to `OUT.json`")
	f.StringVar(&s.text, "text", "", "measure on the text in `FILE`, read with the tokenizer.json beside the model")
	f.StringVar(&s.npz, "npz", "", "instead of --text: measure on the array input_ids of `FILE`, a NumPy archive")
	f.Var(&s.length, "length", "number of `TOKENS` in each piece of the text")
	f.IntVar(&s.texts, "texts", 1, "measure on `NUMBER` pieces of the text, one after the other")
	f.BoolVar(&s.perChannel, "per-channel", false, "a scale for each channel of each kv head, in place of one for all: a larger file, and less rounding where few channels are large")
	f.BoolVar(&s.force, "force", false, "replace an existing output")
	s.limits.Flags(cmd)
	return cmd
}

func (s *scalesCommand) run(cmd *cobra.Command, path string) error {
	switch {
	case (s.text == "") == (s.npz == ""):
		return cli.Usage("scales are measured on a text; give --text FILE, or tokens with --npz FILE")
	case s.output == "":
		return cli.Usage("-o needs the name of a file for the scales, such as scales.json")
	case s.length < 1 || s.texts < 1:
		return cli.Usage("--length and --texts: expected numbers above 0")
	}
	if err := cli.CheckOutput(s.output, path, s.force); err != nil {
		return err
	}
	texts, err := s.tokens(path)
	if err != nil {
		return err
	}
	opts, err := s.Options()
	if err != nil {
		return err
	}
	return s.limits.Within(cmd, &opts, func(ctx context.Context) error { return s.measure(ctx, cmd, path, texts, opts) })
}

// tokens are those that the model is run on.
func (s *scalesCommand) tokens(model string) ([][]int64, error) {
	if s.npz != "" {
		rows, err := validate.ReadArrays(s.npz, 0)
		if err != nil {
			err = fmt.Errorf("--npz %w", err)
		}
		return rows, err
	}
	return cli.TextPieces(s.text, model, int(s.length), s.texts)
}

// measuredScales is what the command prints as JSON.
type measuredScales struct {
	Tokens int    `json:"tokens"`
	Layers int    `json:"layers"`
	Left   []int  `json:"left"` // layers without scales
	Output string `json:"output"`
}

func (s *scalesCommand) measure(ctx context.Context, cmd *cobra.Command, path string, texts [][]int64, opts rewrite.Options) error {
	progress := cli.NewProgress(cmd.ErrOrStderr())
	defer progress.Done()
	opts.Progress = progress.Say
	r, err := cachescales.Measure(ctx, path, texts, cachescales.Options{Rewrite: opts, PerChannel: s.perChannel})
	progress.Done()
	if err != nil {
		return err
	}
	var file bytes.Buffer
	if err := rewrite.WriteCacheScales(&file, r.Scales); err != nil {
		return err
	}
	if err := configfile.Write(s.output, file.Bytes(), 0o644); err != nil {
		return err
	}
	out := measuredScales{Tokens: r.Tokens, Layers: len(r.Scales), Left: []int{}, Output: s.output}
	for _, l := range r.Left {
		out.Left = append(out.Left, l.Layer)
	}
	return s.Show(cmd, out, func(w *cli.Writer) {
		w.Line("%s: the scales of %d layers, measured on %d tokens.", s.output, out.Layers, out.Tokens)
		for _, l := range r.Left {
			w.Line("%s", cli.Wrap(fmt.Sprintf("Layer %d has no scales: %s", l.Layer, l.Reason), "  "))
		}
	})
}
