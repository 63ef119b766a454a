package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/diagram"
	"github.com/rope-rewrite/rope-rewrite/validate/capture"
)

// attention draws a model's attention weights on a text.
func (p *plotting) attention(cmd *cobra.Command, path string) (figured, error) {
	switch {
	case p.text == "":
		return nil, cli.Usage("attention needs a text; name a file with --text")
	case p.first && (cmd.Flags().Changed("layer") || cmd.Flags().Changed("head")):
		return nil, cli.Usage("--first-token draws all layers, and of their heads the mean, the most and the least; leave --layer and --head out")
	case len(p.methods) > 0:
		return nil, cli.Usage("attention is drawn without a --method; rewrite the model first, and leave --method out")
	}
	if p.length == 0 {
		p.length = 512
	}
	tokens, err := cli.TextTokens(p.text, path, int(p.length))
	if err != nil {
		return nil, err
	}
	options, err := p.Options()
	if err != nil {
		return nil, err
	}
	m, err := capture.Open(cmd.Context(), path, capture.Options{Rewrite: options})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	run, err := m.Run(cmd.Context(), capture.Tokens(tokens...))
	if err != nil {
		return nil, err
	}
	if p.first {
		var layers []diagram.LayerProblem
		for _, l := range run.Layers {
			layers = append(layers, diagram.LayerProblem{Layer: l.Layer, Problem: l.Problem})
		}
		return diagram.FirstToken(layers)
	}
	i := slices.IndexFunc(run.Layers, func(l capture.Layer) bool { return l.Layer == p.layer })
	if i < 0 {
		return nil, cli.Usage("--layer %d: the model has no attention layer of that number that can be captured; inspect lists them", p.layer)
	}
	return diagram.Attended(p.layer, run.Layers[i].Problem, p.head)
}
