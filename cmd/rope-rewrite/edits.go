package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// addEdit reads SPEC, SPEC@LAYERS or SPEC@all.
func addEdit(opts *rewrite.Options, axis rope.Axis, text string) error {
	text, where, some := strings.Cut(text, "@")
	spec, err := rope.ParseSpec(axis, text)
	if err != nil {
		return err
	}
	if !some {
		if slices.ContainsFunc(opts.Edits, func(s rope.Spec) bool { return s.Axis == axis }) {
			return fmt.Errorf("%v: two methods are given for all layers; write SPEC@LAYERS to give some their own", axis)
		}
		opts.Edits = append(opts.Edits, spec)
		return nil
	}
	if where == "all" {
		opts.LayerEdits = append(opts.LayerEdits, rewrite.AllLayers(spec))
		return nil
	}
	selected, err := parseLayers(where)
	if err != nil {
		return err
	}
	opts.LayerEdits = append(opts.LayerEdits, rewrite.LayerEdit{Spec: spec, Layers: selected.has, Where: "layers " + where})
	return nil
}

// addRopeParameters takes the dictionary itself or the name of a file with it.
func addRopeParameters(opts *rewrite.Options, text string) error {
	data := []byte(text)
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		var err error
		if data, err = os.ReadFile(text); err != nil {
			return fmt.Errorf("%q is neither a JSON object nor a file that can be read", text)
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
