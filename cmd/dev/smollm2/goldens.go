package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/internal/buildfiles"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
)

// goldens are transformers' logits of one text; testdata/README.md has the keys.
type goldens struct {
	file   *npz.File
	ids    []int64
	places []int64
}

func openGoldens(folder string) (*goldens, error) {
	file, err := npz.Open(filepath.Join(folder, "goldens.npz"))
	if err != nil {
		return nil, err
	}
	g := &goldens{file: file}
	if g.ids, _, err = file.Int64("ids"); err != nil {
		return nil, err
	}
	g.places, _, err = file.Int64("places")
	return g, err
}

func goldenCommand() *cobra.Command {
	var variant, method, texts, work string
	command := &cobra.Command{
		Use:   "golden MODEL",
		Short: "Compare a model's logits with those of transformers for the variant and method",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			d, err := againstGolden(command.Context(), args[0], texts, work, variant, method)
			if err != nil {
				return err
			}
			d.print(command.OutOrStdout(), args[0], method, variant)
			if !d.ok() {
				return errors.New("the model does not give the golden's logits")
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&variant, "variant", "optimum", "variant that the model comes from")
	flags.StringVar(&method, "method", "yarn4", "plain, or yarn4: factor 4, original_max_position_embeddings 8192")
	flags.StringVar(&texts, "texts", "testdata/smollm2", "folder of goldens.npz")
	flags.StringVar(&work, "work", "build/smollm2", "folder for temporary files")
	return command
}

// ok reports whether logits are as near as those of equal models.
func (d distance) ok() bool { return d.Fraction <= logitsLimit }

func (d distance) print(out io.Writer, model, method, variant string) {
	fmt.Fprintf(out, "%s against transformers' %s of %s: largest difference %.2g = %.2g of the logits' range %.4g (limit %.0e)\n",
		model, method, variant, d.Max, d.Fraction, d.Range, logitsLimit)
}

// againstGolden runs the model on the goldens' text and compares the logits that are stored there.
func againstGolden(ctx context.Context, model, texts, work, variant, method string) (d distance, err error) {
	if err := buildfiles.SetLibraries(); err != nil {
		return d, err
	}
	g, err := openGoldens(texts)
	if err != nil {
		return d, err
	}
	defer g.file.Close()
	tokens, shape, err := g.file.Int64(variant + "_top")
	if err != nil {
		return d, err
	}
	want, _, err := g.file.Float32(variant + "_" + method)
	if err != nil {
		return d, err
	}
	ranges, _, err := g.file.Float32(variant + "_range")
	if err != nil {
		return d, err
	}
	d.Length, d.Range = len(g.ids), float64(ranges[slices.Index([]string{"plain", "yarn4"}, method)])
	if err := os.MkdirAll(work, 0o755); err != nil {
		return d, err
	}
	folder, err := os.MkdirTemp(work, ".logits-*")
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	path := filepath.Join(folder, "logits")
	if _, err := probe(ctx, task{Model: model, Texts: [][]int64{g.ids}, Logits: path, Places: g.places}); err != nil {
		return d, err
	}
	got, err := readFloats(path)
	if err != nil {
		return d, err
	}
	vocabulary := len(got) / len(g.places)
	for i := range want {
		value := got[i/shape[1]*vocabulary+int(tokens[i])]
		difference := math.Abs(float64(value) - float64(want[i]))
		if math.IsNaN(difference) {
			return d, errors.New("the logits hold numbers that are not finite")
		}
		d.Max = max(d.Max, difference)
	}
	d.Fraction = d.Max / d.Range
	return d, nil
}

// readFloats reads a file that writeFloats left.
func readFloats(path string) ([]float32, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	out := make([]float32, info.Size()/int64(unsafe.Sizeof(float32(0))))
	_, err = io.ReadFull(file, bytesOf(out))
	return out, err
}
