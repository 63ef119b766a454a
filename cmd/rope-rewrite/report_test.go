package main

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// The keys that --json promises.
var (
	reportKeys    = []string{"edits", "layers", "model", "output", "report_version", "seconds", "warnings"}
	sometimesKeys = []string{"again", "fallback", "opset", "record", "weights"}
	layerKeys     = []string{"cache", "head_size", "heads", "kv_heads", "layer", "layout", "mask", "node", "op",
		"reason", "rotary_dim", "status", "theta", "verification"}
	sometimesOfLayer = []string{"form", "kind", "rotation_only"}
	verificationKeys = []string{"cases", "max_error"}
)

// report expects the last stdout to be one report and nothing else.
func report(ts *testscript.TestScript, neg bool, args []string) {
	d := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	var object map[string]json.RawMessage
	ts.Check(d.Decode(&object))
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		ts.Fatalf("there is more on stdout than one object: %v", err)
	}
	if object["output"] != nil && string(object["output"]) != `""` && object["record"] == nil {
		ts.Fatalf("a model was written, and its record is missing")
	}
	got := slices.DeleteFunc(keys(object), func(k string) bool { return slices.Contains(sometimesKeys, k) })
	if !slices.Equal(got, reportKeys) {
		ts.Fatalf("keys %q, want %q", got, reportKeys)
	}
	for key, value := range object {
		if string(value) == "null" {
			ts.Fatalf("%s is null", key)
		}
	}
	var layers []map[string]json.RawMessage
	ts.Check(json.Unmarshal(object["layers"], &layers))
	for i, layer := range layers {
		got := slices.DeleteFunc(keys(layer), func(k string) bool { return slices.Contains(sometimesOfLayer, k) })
		if !slices.Equal(got, layerKeys) {
			ts.Fatalf("layer %d has the keys %q, want %q", i, got, layerKeys)
		}
		var l struct {
			Layer                int
			Status, Kind, Reason string
			Verification         map[string]json.RawMessage
		}
		for key, into := range map[string]any{"layer": &l.Layer, "status": &l.Status, "reason": &l.Reason, "verification": &l.Verification} {
			ts.Check(json.Unmarshal(layer[key], into))
		}
		if layer["kind"] != nil {
			ts.Check(json.Unmarshal(layer["kind"], &l.Kind))
		}
		switch {
		case l.Layer != i:
			ts.Fatalf("layer %d says that it is layer %d", i, l.Layer)
		case l.Status == "rewritten" && l.Kind == "" && l.Reason == "":
			for _, key := range verificationKeys {
				if l.Verification[key] == nil {
					ts.Fatalf("the verification of layer %d lacks %s", i, key)
				}
			}
		case l.Status == "rotation" && l.Kind != "" && l.Reason != "" && layer["rotation_only"] != nil && l.Verification != nil:
		case l.Status == "unchanged" && l.Kind != "" && l.Reason != "":
		default:
			ts.Fatalf("layer %d has the status %q, the kind %q and the reason %q", i, l.Status, l.Kind, l.Reason)
		}
	}
}

func keys(object map[string]json.RawMessage) []string { return slices.Sorted(maps.Keys(object)) }
