// Genspec writes everything that is derived from the op's one specification,
// customop.RotaryAttentionSpec: the C header of the kernels, the Go node builder
// and the reference page. Run it as `go generate ./customop`.
package main

import (
	"bytes"
	"embed"
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"text/template"

	"github.com/rope-rewrite/rope-rewrite/customop"
)

//go:embed *.tmpl
var templates embed.FS

// file is one generated file: its path from the repository's root and the
// template that writes it.
type file struct {
	path, template string
	tidy           func([]byte) ([]byte, error)
}

var files = []file{
	{path: "native/op/spec.gen.h", template: "header.tmpl"},
	{path: "customop/rotaryattention_gen.go", template: "builder.tmpl", tidy: format.Source},
	{path: "docs/ops.md", template: "page.tmpl"},
}

func main() {
	root := flag.String("root", ".", "the repository's root `folder`")
	flag.Parse()
	if err := generate(*root, customop.RotaryAttentionSpec); err != nil {
		fmt.Fprintln(os.Stderr, "genspec:", err)
		os.Exit(1)
	}
}

// generate writes every file below root, all or none.
func generate(root string, spec customop.Spec) error {
	if err := check(spec); err != nil {
		return err
	}
	texts := make([][]byte, len(files))
	for i, f := range files {
		text, err := render(f, spec)
		if err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		texts[i] = text
	}
	for i, f := range files {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(f.path)), texts[i], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// page is what the templates see.
type page struct {
	customop.Spec
	Domain  string
	Version int    // of the specification
	Release string // of the project

	NumberedSince int
}

func render(f file, spec customop.Spec) ([]byte, error) {
	t, err := template.New(f.template).Funcs(functions).ParseFS(templates, f.template)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, page{Spec: spec, Domain: customop.Domain, Version: customop.SpecVersion, Release: customop.Version, NumberedSince: customop.NumberedSince}); err != nil {
		return nil, err
	}
	if f.tidy == nil {
		return out.Bytes(), nil
	}
	return f.tidy(out.Bytes())
}
