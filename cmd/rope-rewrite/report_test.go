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
	var sites []map[string]json.RawMessage
	ts.Check(json.Unmarshal(object["sites"], &sites))
	for i, site := range sites {
		if got := keys(site); !slices.Equal(got, siteKeys) {
			ts.Fatalf("site %d has the keys %q, want %q", i, got, siteKeys)
		}
		var s struct {
			Layer          int
			Status, Reason string
			Proof          map[string]json.RawMessage
		}
		for key, into := range map[string]any{"layer": &s.Layer, "status": &s.Status, "reason": &s.Reason, "proof": &s.Proof} {
			ts.Check(json.Unmarshal(site[key], into))
		}
		switch {
		case s.Layer != i:
			ts.Fatalf("site %d says that it is layer %d", i, s.Layer)
		case s.Status == "rewritten" && s.Reason == "":
			for _, key := range proofKeys {
				if s.Proof[key] == nil {
					ts.Fatalf("the proof of site %d lacks %s", i, key)
				}
			}
		case s.Status == "kept" && s.Reason != "":
		default:
			ts.Fatalf("site %d has the status %q and the reason %q", i, s.Status, s.Reason)
		}
	}
}

func keys(object map[string]json.RawMessage) []string { return slices.Sorted(maps.Keys(object)) }
