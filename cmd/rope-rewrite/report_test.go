package main

import (
	"encoding/json"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// report expects the last stdout to be one report whose fields fit together; which there are and of what
// types is the schema's.
func report(ts *testscript.TestScript, neg bool, args []string) {
	var r rewrite.Report
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &r))
	if r.Version != rewrite.ReportVersion {
		ts.Fatalf("report_version %d", r.Version)
	}
	if r.Output != "" && r.Record == nil {
		ts.Fatalf("a model was written, and its record is missing")
	}
	for i, l := range r.Sites {
		switch {
		case l.Layer != i:
			ts.Fatalf("layer %d says that it is layer %d", i, l.Layer)
		case l.Status == rewrite.Rewritten && l.Kind == "" && l.Reason == "" && l.Proof != nil && l.Proof.Cases > 0:
		case l.Status == rewrite.Rotation && l.Kind != "" && l.Reason != "" && l.RotationOnly && l.Proof != nil:
		case l.Status == rewrite.Unchanged && l.Kind != "" && l.Reason != "":
		default:
			ts.Fatalf("layer %d has the status %q, the kind %q and the reason %q", i, l.Status, l.Kind, l.Reason)
		}
	}
}
