package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// AddEdit reads SPEC, SPEC@LAYERS, SPEC@all, SPEC@full or SPEC@windowed, and returns the layers that are
// named by number.
func AddEdit(opts *rewrite.Options, axis rope.Axis, text string) (Layers, error) {
	if text = strings.TrimSpace(text); strings.ContainsAny(text, "\n\r") {
		return nil, fmt.Errorf("%v: %.60q has a line end; write the method with its keys on one line", axis, text)
	}
	text, where, some := strings.Cut(text, "@")
	if err := otherFlag(axis.String(), text); err != nil {
		return nil, err
	}
	spec, err := rope.ParseSpec(axis, text)
	if err != nil {
		return nil, err
	}
	if !some {
		for _, other := range opts.Edits {
			if err := rope.CheckTogether(other, spec); err != nil {
				return nil, fmt.Errorf("%w, or write SPEC@LAYERS for a method of some layers", err)
			}
		}
		opts.Edits = append(opts.Edits, spec)
		return nil, nil
	}
	switch kind := rewrite.LayerKind(strings.ToLower(where)); kind {
	case "all":
		opts.LayerEdits = append(opts.LayerEdits, rewrite.AllLayers(spec))
		return nil, nil
	case rewrite.FullAttention:
		opts.LayerEdits = append(opts.LayerEdits, rewrite.LayerEdit{Spec: spec, Kind: kind, Where: "full-attention layers"})
		return nil, nil
	case rewrite.Windowed:
		opts.LayerEdits = append(opts.LayerEdits, rewrite.LayerEdit{Spec: spec, Kind: kind, Where: "sliding-window layers"})
		return nil, nil
	}
	selected, err := ParseLayers(where)
	if err != nil {
		return nil, err
	}
	opts.LayerEdits = append(opts.LayerEdits, rewrite.LayerEdit{Spec: spec, Layers: selected.Has, Where: "layers " + where})
	return selected, nil
}

// AddRopeParameters takes the dictionary itself, a config.json that contains it, or the name
// of a file with either.
func AddRopeParameters(opts *rewrite.Options, text string) error {
	data := []byte(text)
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		var err error
		if config := filepath.Join(text, "config.json"); exists(config) {
			return fmt.Errorf("%s is a folder; name the file %s", text, config)
		}
		data, err = configfile.Read(text, configfile.Config)
		if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
			return fmt.Errorf("%q is neither a JSON object nor a file that can be read: give {…}, or the path of a config.json", short.Name(text))
		}
		if err != nil {
			return err
		}
	}
	byType, err := rope.ParseLayerRopeParameters(data)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(byType)) {
		if name == "" {
			opts.Edits = append(opts.Edits, byType[name])
			continue
		}
		opts.LayerEdits = append(opts.LayerEdits, rewrite.LayerEdit{Spec: byType[name], Type: name, Where: name + " layers"})
	}
	return nil
}

// AddMethod reads "AXIS SPEC", or several with semicolons between. Document ids, which some masks need, come from
// an input of the model.
func AddMethod(opts *rewrite.Options, text string) error {
	for part := range strings.SplitSeq(text, ";") {
		axis, spec, found := strings.Cut(strings.TrimSpace(part), " ")
		at := slices.IndexFunc(methodAxes(), func(a rope.Axis) bool { return a.String() == axis })
		if !found || at < 0 {
			return fmt.Errorf(`%q: expected none, or a method such as "scaling yarn:factor=2" or "positions string"`, short.Name(text))
		}
		if _, err := AddEdit(opts, methodAxes()[at], strings.TrimSpace(spec)); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(opts.Edits, ofDocuments) || slices.ContainsFunc(opts.LayerEdits, func(e rewrite.LayerEdit) bool { return ofDocuments(e.Spec) }) {
		opts.Documents.Input = rewrite.DocumentsInput
	}
	return nil
}

// ofDocuments reports whether a method needs document ids.
func ofDocuments(s rope.Spec) bool {
	m, err := rope.Lookup(s.Axis, s.Name)
	return err == nil && m.Part == rope.DocumentPart
}

// methodAxes are the axes on which a method can be given.
func methodAxes() []rope.Axis {
	return []rope.Axis{rope.ScalingAxis, rope.PositionsAxis, rope.MaskAxis}
}
