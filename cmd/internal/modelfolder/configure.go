package modelfolder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/internal/version"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// recordFile is in every folder that was written, and says what was changed in its configurations.
const recordFile = "rope_rewrite.json"

// record is its content.
type record struct {
	Version        int                             `json:"version"`
	Tool           string                          `json:"tool"`
	Edits          []string                        `json:"edits"`
	Models         []string                        `json:"models"`
	Configurations map[string][]modelconfig.Change `json:"configurations"` // by path
	Added          []string                        `json:"added"`          // files that the original does not have
}

// recordVersion is the newest version of the record that is read, and the one that is written.
const recordVersion = 1

// readRecord reads the record of a rewritten folder; other folders have an empty one.
func readRecord(folder string) (*record, error) {
	file := filepath.Join(folder, recordFile)
	data, err := configfile.Read(file, configfile.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return &record{}, nil
	}
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s is not a record of an earlier rewrite: %w; move it away if it is something else", file, err)
	}
	if r.Version > recordVersion {
		return nil, fmt.Errorf("%s has version %d, and this rope-rewrite reads versions up to %d; use a newer one", file, r.Version, recordVersion)
	}
	return &r, nil
}

// configuration is the config.json of a model before an earlier rewrite changed it; nil if none
// did.
func (r *record) configuration(folder, model string) ([]byte, error) {
	dir := path.Dir(model)
	for _, name := range []string{path.Join(dir, configFile), path.Join(path.Dir(dir), configFile)} {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if missing(file) {
			continue
		}
		if len(r.Configurations[name]) == 0 {
			return nil, nil
		}
		text, err := readText(source{path: name, file: file})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := text.Undo(r.Configurations[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return text.Bytes(), nil
	}
	return nil, nil
}

// configure changes the configurations, and adds the op library where they name it.
func (f *Folder) configure(files []source, earlier *record, opts rewrite.Options) error {
	now := record{Version: recordVersion, Tool: version.This().String(), Edits: []string{}, Models: []string{}, Configurations: map[string][]modelconfig.Change{}, Added: []string{recordFile}}
	for _, x := range f.Files {
		if x.What == Rewritten {
			now.Models = append(now.Models, x.Path)
			if now.Edits = x.Report.Edits; now.Edits == nil {
				now.Edits = []string{}
			}
		}
	}
	library := customop.LibraryFile()
	for _, s := range files {
		var apply func(*modelconfig.Text) error
		switch name := path.Base(s.path); {
		case name == configFile:
			apply = func(t *modelconfig.Text) error { return f.configureModel(s.path, t, opts.Context.Length) }
		case name == genaiConfigFile:
			apply = func(t *modelconfig.Text) error { return f.configureHost(s.path, t, library, opts.Context.Length) }
		default:
			continue
		}
		text, err := readText(s)
		if err != nil { // it may belong to something else
			f.Warnings = append(f.Warnings, s.path+": "+err.Error()+"; it is left unchanged")
			continue
		}
		before := string(text.Bytes())
		if err := text.Undo(earlier.Configurations[s.path]); err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
		if err := apply(text); err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
		if len(text.Changes) > 0 {
			now.Configurations[s.path] = text.Changes
		}
		if len(text.Changes) > 0 || string(text.Bytes()) != before {
			f.add(File{Path: s.path, What: Configured, Changes: text.Changes}, line{data: text.Bytes()})
		}
		if beside := path.Join(path.Dir(s.path), library); namesLibrary(text, library) {
			if err := f.addLibrary(beside, opts.Evaluation.Library); err != nil {
				return err
			}
			now.Added = append(now.Added, beside)
		}
	}
	data, err := json.MarshalIndent(now, "", "  ")
	if err != nil {
		return err
	}
	f.add(File{Path: recordFile, What: Added}, line{data: append(data, '\n')})
	f.dropAdded(files, earlier)
	return nil
}

func readText(s source) (*modelconfig.Text, error) {
	data, err := configfile.Read(s.file, configfile.Config)
	if err != nil {
		return nil, err
	}
	return modelconfig.NewText(data)
}

// configureModel describes in config.json the new models that read it.
func (f *Folder) configureModel(config string, text *modelconfig.Text, context int64) error {
	report := f.first(func(model string) bool { // as modelconfig.Read finds it
		dir := path.Dir(model)
		return path.Dir(config) == dir || path.Dir(config) == path.Dir(dir) && !f.hasConfig(dir)
	})
	if report == nil {
		return nil
	}
	now, warnings := claimOf(report, context)
	more, err := text.Apply(now)
	for _, w := range append(warnings, more...) {
		f.Warnings = append(f.Warnings, config+": "+w)
	}
	return err
}

// hasConfig reports whether a folder below has a config.json of its own.
func (f *Folder) hasConfig(dir string) bool {
	return !missing(filepath.Join(f.path, filepath.FromSlash(dir), configFile))
}

// configureHost writes into genai_config.json what ONNX Runtime GenAI must know.
func (f *Folder) configureHost(config string, text *modelconfig.Text, library string, context int64) error {
	report := f.first(func(model string) bool { return path.Dir(model) == path.Dir(config) })
	if report == nil {
		return nil
	}
	now, _ := claimOf(report, context)
	host := modelconfig.Host{Context: now.Context}
	for _, s := range report.Sites {
		host.Growing = host.Growing || s.Status == rewrite.Rewritten && s.Cache == "growing"
	}
	if report.Record != nil && report.Record.OpSpec > 0 {
		host.Library = library
	}
	return text.ApplyHost(host)
}

// namesLibrary reports whether a configuration names the op library.
func namesLibrary(text *modelconfig.Text, library string) bool {
	var name string
	return json.Unmarshal(text.Get("model.decoder.session_options.custom_ops_library"), &name) == nil && name == library
}

// addLibrary puts the op library beside a model.
func (f *Folder) addLibrary(at, library string) error {
	data, err := configfile.Read(library, configfile.Library)
	if err != nil {
		return err
	}
	if !f.has(at) {
		f.add(File{Path: at, What: Added, Size: int64(len(data))}, line{data: data})
	}
	return nil
}

// dropAdded leaves out what an earlier rewrite added and this one does not.
func (f *Folder) dropAdded(files []source, earlier *record) {
	for _, name := range earlier.Added {
		for _, s := range files {
			if s.path == name && !f.has(name) {
				f.Left = append(f.Left, name)
			}
		}
	}
}

// first returns the report of the first rewritten model whose path is wanted.
func (f *Folder) first(of func(path string) bool) *rewrite.Report {
	for _, x := range f.Files {
		if x.What == Rewritten && of(x.Path) {
			return x.Report
		}
	}
	return nil
}

// claimOf reads from a report what a configuration can say of the model.
// context are the tokens that it is meant for, 0 if not given.
func claimOf(report *rewrite.Report, context int64) (now modelconfig.Meaning, warnings []string) {
	r := report.Record
	if r == nil || len(r.Edits) == 0 {
		return now, nil
	}
	everywhere := func(e provenance.Edit) bool { // or in all layers except those that the edit's note explains
		return len(e.Layers) == r.Layers() || e.Note != ""
	}
	for _, e := range r.Edits {
		if e.What != "scaling" && e.What != "mask" {
			continue
		}
		if !everywhere(e) {
			warnings = append(warnings, fmt.Sprintf("it cannot describe %v for some layers only, so it does not mention it", e))
			continue
		}
		name, _, _ := strings.Cut(e.Given, ":")
		if e.What == "scaling" {
			now.Scaling, now.Used = name, e.Settings
			factor, original := e.Setting("factor").Numbers(), e.Setting("original_max_position_embeddings").Integer()
			if original == 0 {
				original = r.Configuration.Trained
			}
			if len(factor) == 1 && original > 0 {
				now.Context = int64(factor[0] * float64(original))
			}
		} else if name == "sliding-window" {
			now.Window = e.Setting("window").Integer()
		}
	}
	if context > 0 {
		now.Context = context
	}
	return now, warnings
}
