package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// addEdit reads SPEC, SPEC@LAYERS or SPEC@all, and returns the layers that are named.
func addEdit(opts *rewrite.Options, axis rope.Axis, text string) (layers, error) {
	text, where, some := strings.Cut(text, "@")
	if err := otherFlag(axis.String(), text); err != nil {
		return nil, err
	}
	spec, err := rope.ParseSpec(axis, text)
	if err != nil {
		return nil, err
	}
	if !some {
		if slices.ContainsFunc(opts.Edits, func(s rope.Spec) bool { return s.Axis == axis }) {
			return nil, fmt.Errorf("%v: two methods are given for all layers; write SPEC@LAYERS to give some their own", axis)
		}
		opts.Edits = append(opts.Edits, spec)
		return nil, nil
	}
	if strings.EqualFold(where, "all") {
		opts.LayerEdits = append(opts.LayerEdits, rewrite.AllLayers(spec))
		return nil, nil
	}
	selected, err := parseLayers(where)
	if err != nil {
		return nil, err
	}
	opts.LayerEdits = append(opts.LayerEdits, rewrite.LayerEdit{Spec: spec, Layers: selected.has, Where: "layers " + where})
	return selected, nil
}

// addRopeParameters takes the dictionary itself, or a config.json that holds it, or the name
// of a file with either.
func addRopeParameters(opts *rewrite.Options, text string) error {
	data := []byte(text)
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		var err error
		if config := filepath.Join(text, "config.json"); exists(config) {
			return fmt.Errorf("%s is a folder; name the file %s", text, config)
		}
		data, err = configfile.Read(text, configfile.Config)
		if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
			return fmt.Errorf("%q is neither a JSON object nor a file that can be read: give {…}, or the path of a config.json", text)
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
