// Genspec writes everything that is derived from the ops' specifications,
// customop.Specs: the C header of the kernels, a Go node builder for each op
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
	"strings"
	"text/template"

	"github.com/rope-rewrite/rope-rewrite/customop"
)

//go:embed *.tmpl
var templates embed.FS

// file is one generated file: its path from the repository's root, the
// template that writes it, and what the template sees.
type file struct {
	path, template string
	data           any
	tidy           func([]byte) ([]byte, error)
}

// page is what the templates of all ops see.
type page struct {
	Ops     []customop.Spec
	Domain  string
	Version int    // of the specification
	Release string // of the project

	NumberedSince int
}

// files are the generated files of ops.
func files(specs []customop.Spec) []file {
	all := page{Ops: specs, Domain: customop.Domain, Version: customop.SpecVersion, Release: customop.Version, NumberedSince: customop.NumberedSince}
	list := []file{
		{path: "native/op/spec.gen.h", template: "header.tmpl", data: all},
		{path: "docs/ops.md", template: "page.tmpl", data: all},
	}
	for _, spec := range specs {
		list = append(list, file{path: "customop/" + strings.ToLower(spec.Name) + "_gen.go", template: "builder.tmpl", data: spec, tidy: format.Source})
	}
	return list
}

func main() {
	root := flag.String("root", ".", "the repository's root `folder`")
	flag.Parse()
	if err := generate(*root, customop.Specs); err != nil {
		fmt.Fprintln(os.Stderr, "genspec:", err)
		os.Exit(1)
	}
}

// generate writes every file below root, all or none.
func generate(root string, specs []customop.Spec) error {
	for _, spec := range specs {
		if err := check(spec); err != nil {
			return err
		}
	}
	list := files(specs)
	texts := make([][]byte, len(list))
	for i, f := range list {
		text, err := f.render()
		if err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		texts[i] = text
	}
	for i, f := range list {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(f.path)), texts[i], 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (f file) render() ([]byte, error) {
	t, err := template.New(f.template).Funcs(functions).ParseFS(templates, f.template)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, f.data); err != nil {
		return nil, err
	}
	if f.tidy == nil {
		return out.Bytes(), nil
	}
	return f.tidy(out.Bytes())
}
