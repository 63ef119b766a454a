package modelfolder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/internal/links"
	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/internal/version"
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

	// Originals are the configurations to the byte, by path; records of older versions have none.
	Originals map[string]modelconfig.Original `json:"originals,omitempty"`
}

// recordVersion is the newest version of the record that is read, and the one that is written.
const recordVersion = 1

// readRecord reads the record of a rewritten folder; other folders have an empty one.
func readRecord(folder links.Folder) (*record, error) {
	file := filepath.Join(folder.Path, recordFile)
	data, err := configfile.ReadIn(folder, recordFile, configfile.Config)
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
func (r *record) configuration(folder links.Folder, model string) ([]byte, error) {
	dir := path.Dir(model)
	for _, name := range []string{path.Join(dir, configFile), path.Join(path.Dir(dir), configFile)} {
		if missing(filepath.Join(folder.Path, filepath.FromSlash(name))) {
			continue
		}
		if len(r.Configurations[name]) == 0 {
			return nil, nil
		}
		data, err := configfile.ReadIn(folder, filepath.FromSlash(name), configfile.Config)
		if err != nil {
			return nil, err
		}
		text, err := r.original(name, data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return text.Bytes(), nil
	}
	return nil, nil
}

// original is a configuration of the folder as it was before an earlier rewrite changed it.
func (r *record) original(name string, data []byte) (*modelconfig.Text, error) {
	if before, ok := r.Originals[name].Of(data); ok {
		return modelconfig.NewText(before)
	}
	text, err := modelconfig.NewText(data)
	if err != nil {
		return nil, err
	}
	return text, text.Undo(r.Configurations[name]) // somebody changed it since
}

// configure changes the configurations, and adds the op library beside those of hosts that load it.
func (f *Folder) configure(files []source, earlier *record, opts rewrite.Options) error {
	now := record{Version: recordVersion, Tool: version.This().String(), Edits: []string{}, Models: []string{},
		Configurations: map[string][]modelconfig.Change{}, Originals: map[string]modelconfig.Original{}, Added: []string{recordFile}}
	for _, x := range f.Files {
		if x.What == Rewritten {
			now.Models = append(now.Models, x.Path)
			if now.Edits = x.Report.Edits; now.Edits == nil {
				now.Edits = []string{}
			}
		}
	}
	for _, s := range files {
		var apply func(string, *modelconfig.Text, rewrite.Options) error
		library := ""
		switch path.Base(s.path) {
		case configFile:
			apply = f.configureModel
		case genaiConfigFile:
			apply = func(config string, text *modelconfig.Text, opts rewrite.Options) (err error) {
				library, err = f.configureHost(config, text, opts)
				return err
			}
		case tokenizerConfigFile:
			apply = func(config string, text *modelconfig.Text, opts rewrite.Options) error {
				return f.configureTokenizer(config, text, earlier, opts)
			}
		default:
			continue
		}
		var text *modelconfig.Text
		data, err := configfile.ReadIn(f.from, filepath.FromSlash(s.path), configfile.Config)
		if err == nil {
			text, err = earlier.original(s.path, data)
		}
		if err != nil { // it may belong to something else
			f.Warnings = append(f.Warnings, s.path+": it cannot be read: "+err.Error()+"; it is left unchanged")
			continue
		}
		original := text.Bytes()
		if err := apply(s.path, text, opts); err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
		if len(text.Changes) > 0 {
			now.Configurations[s.path], now.Originals[s.path] = text.Changes, modelconfig.OriginalOf(original, text.Bytes())
		}
		if len(text.Changes) > 0 || !bytes.Equal(text.Bytes(), data) {
			f.add(File{Path: s.path, What: Configured, Changes: text.Changes}, line{data: text.Bytes()})
		}
		if library != "" {
			if err := f.addLibrary(library, opts.Evaluation.Library); err != nil {
				return err
			}
			now.Added = append(now.Added, library)
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

// configureModel describes in config.json the new models that read it.
func (f *Folder) configureModel(config string, text *modelconfig.Text, opts rewrite.Options) error {
	i := f.first(func(model string) bool { return f.above(model, configFile) == config })
	if i < 0 {
		return nil
	}
	warnings, err := text.Apply(meaningOf(f.Files[i].Report, opts.Context.Length))
	for _, w := range warnings {
		f.Warnings = append(f.Warnings, config+": "+w)
	}
	return err
}

// above is the path of the file of a name that belongs to a model: beside it or, as model hubs have it, in
// the folder above. It is "" where there is none.
func (f *Folder) above(model, name string) string {
	dir := path.Dir(model)
	for _, at := range []string{dir, path.Dir(dir)} {
		if file := path.Join(at, name); !missing(filepath.Join(f.from.Path, filepath.FromSlash(file))) {
			return file
		}
	}
	return ""
}

// addLibrary puts the op library beside a genai_config.json.
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

// first returns the place in Files of the first rewritten model whose path is wanted, -1 where there is none.
func (f *Folder) first(of func(path string) bool) int {
	return slices.IndexFunc(f.Files, func(x File) bool { return x.What == Rewritten && of(x.Path) })
}
