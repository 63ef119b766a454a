package modelfolder

import (
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// configureTokenizer writes the new context of the models that a tokenizer belongs to into its configuration.
func (f *Folder) configureTokenizer(config string, text *modelconfig.Text, earlier *record, opts rewrite.Options) error {
	i := f.first(func(model string) bool { return f.above(model, tokenizerConfigFile) == config })
	if i < 0 {
		return nil
	}
	model := f.Files[i]
	context := meaningOf(model.Report, opts.Context.Length).Context
	if context == 0 {
		return nil
	}
	// A model whose configuration has a scaling already has two lengths.
	warning, err := text.ApplyTokenizer(context, model.Report.Record.Configuration.Trained, f.length(f.above(model.Path, configFile), earlier))
	if warning != "" {
		f.Warnings = append(f.Warnings, config+": "+warning)
	}
	return err
}

// length is max_position_embeddings of the original's config.json; 0 where it cannot be read.
func (f *Folder) length(config string, earlier *record) int64 {
	data, err := configfile.ReadIn(f.from, filepath.FromSlash(config), configfile.Config)
	if err != nil {
		return 0
	}
	text, err := earlier.original(config, data)
	if err != nil {
		return 0
	}
	return int64(modelconfig.Parse("", text.Bytes()).Positions().Value)
}
