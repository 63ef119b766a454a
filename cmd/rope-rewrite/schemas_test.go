package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
)

const schemasFolder = "../../docs/schemas"

// valid expects one JSON value that the schema of the command allows.
func valid(ts *testscript.TestScript, args []string, stdout string) {
	cmd, _, err := newRoot().Find(args)
	ts.Check(err)
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(schemasFolder, schemaOf(cmd)))
	ts.Check(err)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(stdout)) // which refuses what goes on
	if err != nil {
		ts.Fatalf("%q printed no JSON: %v\n%s", args, err, stdout)
	}
	if err := schema.Validate(value); err != nil {
		ts.Fatalf("%q: %v", args, err)
	}
}

// docs/schemas has the schema of every command that a user sees, as its types are today.
func TestSchemas(t *testing.T) {
	c := &cli.Common{}
	root := newRootOf(c)
	want, err := schemas(c, root)
	if err != nil {
		t.Fatal(err)
	}
	written, err := filepath.Glob(schemasFolder + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range written {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		if !bytes.Equal(data, want[name]) {
			t.Errorf("%s is not current, run go generate ./cmd/rope-rewrite: %s", name, cmp.Diff(string(data), string(want[name])))
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("docs/schemas lacks %s; run go generate ./cmd/rope-rewrite", name)
	}
	for _, cmd := range append(root.Commands(), root) {
		if !cmd.Hidden && c.Printed(cmd) == nil && !cmd.HasSubCommands() {
			t.Errorf("%s has no schema", cmd.CommandPath())
		}
	}
}
