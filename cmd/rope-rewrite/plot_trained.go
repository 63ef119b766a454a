package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/diagram"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/figure"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// distances draws how often the methods, or what there is without one, use each distance, and how
// often training did.
func (p *plotting) distances(list []diagram.Named, length int) (figured, error) {
	const most = 1 << 20
	if p.trained > most {
		return nil, cli.Usage("--trained-length %d: distances are counted for at most %s tokens", p.trained, figure.Tokens(most))
	}
	documents := diagram.Mix(int(p.trained))
	if p.training != "mix" {
		var err error
		if documents, err = documentLengths(p.training); err != nil {
			return nil, err
		}
	}
	if len(list) > 1 {
		list = list[1:]
	}
	var f figure.Lines
	var err error
	f, p.reaches, err = diagram.Trained(documents, int(p.trained), list, length)
	return f, err
}

// documentLengths are the numbers in the lines of a file.
func documentLengths(path string) (list []int64, err error) {
	text, err := cli.ReadText("--trained", path)
	if err != nil {
		return nil, fmt.Errorf("%w (mix stands for a simple mix of lengths)", err)
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		n, err := strconv.ParseInt(line, 10, 64)
		if err != nil || n < 1 || n > 1<<40 {
			return nil, fmt.Errorf("--trained: line %d of %s is %q; expected the number of tokens of one document, above 0", number, path, short.Name(line))
		}
		list = append(list, n)
	}
	return list, nil
}

// drawn is what the command prints as JSON.
type drawn struct {
	Output    string          `json:"output"`
	Distances []diagram.Reach `json:"distances,omitempty"` // what the picture says in numbers
}

// show says which picture was written, and what it says in numbers.
func (p *plotting) show(cmd *cobra.Command) error {
	return p.Show(cmd, drawn{p.output, p.reaches}, func(w *cli.Writer) {
		w.Line("Wrote %s.", p.output)
		for i, r := range p.reaches {
			w.Line("%s: distances up to %d, the largest with %.3g keys a query", r.Name, r.Largest, r.Keys)
			if i > 0 {
				w.Line("  (in training with %.3g)", r.Trained)
			}
		}
	})
}
