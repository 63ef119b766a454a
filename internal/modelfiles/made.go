package modelfiles

import (
	"encoding/hex"
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
)

// Made is a model that a rewrite made from one beside it, as its record says.
type Made struct{ Path, From string }

// Apart takes the models that were made from one beside them out of a folder's models. A command that is given the
// folder means the originals. Names are paths from the folder.
func Apart(folder links.Folder, names []string) (originals []string, made []Made) {
	beside := map[string][]string{}
	for _, name := range names {
		dir := filepath.Dir(name)
		beside[dir] = append(beside[dir], name)
	}
	from := map[string]string{}
	for _, list := range beside {
		if len(list) > 1 {
			trace(folder, list, from)
		}
	}
	for _, name := range names {
		if original := from[name]; original != "" {
			made = append(made, Made{name, original})
		} else {
			originals = append(originals, name)
		}
	}
	return originals, made
}

// trace finds the models whose record names the graph of another one that has no record. What cannot be read is left
// to whoever reads it next.
func trace(folder links.Folder, names []string, from map[string]string) {
	graphs := map[string]string{} // of those without a record
	records := map[string]string{}
	for _, name := range names {
		graph, record, err := graphOf(folder, name)
		switch {
		case err != nil:
		case record:
			records[name] = graph
		case graphs[graph] == "":
			graphs[graph] = name
		}
	}
	for name, graph := range records {
		if original := graphs[graph]; original != "" {
			from[name] = original
		}
	}
}

// graphOf is the checksum of a model's graph before any rewrite, and whether it is from a record.
func graphOf(folder links.Folder, name string) (graph string, record bool, err error) {
	file, err := folder.Open(name)
	if err != nil {
		return "", false, err
	}
	defer file.Close()
	model, err := onnx.OpenFile(file, filepath.Join(folder.Path, name))
	if err != nil {
		return "", false, err
	}
	defer model.Close()
	if r, err := provenance.Read(model); err == nil {
		return r.Graph, true, nil
	}
	sum := model.Digest()
	return hex.EncodeToString(sum[:]), false, nil
}
