package modelfolder

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// configureHost writes into genai_config.json what ONNX Runtime GenAI must know. library is where
// the op library goes, "" where the host needs none.
func (f *Folder) configureHost(config string, text *modelconfig.Text, opts rewrite.Options) (library string, err error) {
	dir, decoder := path.Dir(config), text.Decoder()
	if decoder != "" && missing(filepath.Join(f.from.Path, filepath.FromSlash(path.Join(dir, decoder)))) {
		f.Warnings = append(f.Warnings, fmt.Sprintf("%s: it names %s, which is not in the folder; it is left unchanged", config, decoder))
		return "", nil
	}
	i := f.first(func(model string) bool {
		return model == path.Join(dir, decoder) || decoder == "" && path.Dir(model) == dir
	})
	if i < 0 {
		return "", nil
	}
	report := f.Files[i].Report
	if err := runsInGenAI(report); err != nil {
		return "", err
	}
	host := modelconfig.Host{Context: meaningOf(report, opts.Context.Length).Context}
	for _, s := range report.Sites {
		host.Growing = host.Growing || s.Status == rewrite.Rewritten && s.Cache == "growing"
	}
	if report.Record != nil && report.Record.OpSpec > 0 {
		host.Library = customop.LibraryFile()
		library = path.Join(dir, host.Library)
	}
	own, err := text.ApplyHost(host)
	if err != nil || own == "" {
		return library, err
	}
	switch {
	case report.Fallback == nil:
		return "", fmt.Errorf("it already names an op library, %s, and GenAI loads only one, so the model needs its fallback there; leave out --fallback none, or give --target onnx", own)
	case report.Fallback.Reason != "":
		return "", fmt.Errorf("it already names an op library, %s, and GenAI loads only one, so the model needs a fallback there but has none (%s); give --target onnx", own, report.Fallback.Reason)
	}
	f.Warnings = append(f.Warnings, fmt.Sprintf("%s: it already names an op library, %s, which stays. GenAI loads only one, so it runs the model on its fallback, more slowly. "+
		"%s is beside it; a program that makes its own session registers both, from within the new folder: in Python %s in C %s",
		config, own, library, pythonLine(library), cLine(library)))
	return library, nil
}

// runsInGenAI refuses a model with inputs that the rewrite adds and GenAI does not feed. The one for places of
// logits may stay without a value.
func runsInGenAI(report *rewrite.Report) error {
	if report.Record == nil {
		return nil
	}
	e := &rewrite.EditError{Layer: rewrite.WholeModel}
	var inputs, flags []string
	for _, x := range report.Record.Edits {
		if typ := x.Setting("type"); x.What == "kv" && typ.Kind() == rope.Word && typ.String() == "int8" && x.Setting("scales").Kind() == rope.Absent {
			e.What, inputs, flags = x.What, append(inputs, "with the scales of the caches"), append(flags, "type=int8")
		}
		if input := x.Setting("input"); input.Kind() == rope.Word && (x.What == "documents" || x.What == "kv") {
			e.What, inputs, flags = x.What, append(inputs, input.String()), append(flags, "--"+x.What)
		}
	}
	if len(inputs) == 0 {
		return nil
	}
	e.Err = fmt.Errorf("ONNX Runtime GenAI would not run the new model, because it does not feed the new input %s; leave out %s or, if another program runs the model, move this file out of the folder",
		strings.Join(inputs, " and "), strings.Join(flags, " and "))
	return e
}

// pythonLine registers a library with the session options named options. Neither line has a space, so
// that the screen does not break it.
func pythonLine(library string) string {
	return fmt.Sprintf(`options.register_custom_ops_library("./%s")`, library)
}

// cLine does the same in C.
func cLine(library string) string {
	return fmt.Sprintf(`api->RegisterCustomOpsLibrary_V2(options,"./%s");`, library)
}
