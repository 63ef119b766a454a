package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
)

func TestGeneratedFilesAreCurrent(t *testing.T) {
	for _, f := range files(customop.Specs) {
		want, err := f.render()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(f.path)))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what customop/spec.go says: run go generate ./customop", f.path)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	attribute := func(a customop.Attribute) customop.Spec {
		return customop.Spec{Name: "Op", Attributes: []customop.Attribute{a}}
	}
	for name, c := range map[string]struct {
		spec customop.Spec
		want string
	}{
		"camel case":       {attribute(customop.Attribute{Name: "headSize", Type: "int", Since: 1}), "snake_case"},
		"unknown type":     {attribute(customop.Attribute{Name: "a", Type: "bool", Since: 1}), `unknown type "bool"`},
		"default's type":   {attribute(customop.Attribute{Name: "a", Type: "int", Default: `"half"`, Since: 1}), "invalid syntax"},
		"list default":     {attribute(customop.Attribute{Name: "a", Type: "ints", Default: "1", Since: 1}), "a list's default is nil"},
		"version 0":        {attribute(customop.Attribute{Name: "a", Type: "int"}), "since version 0"},
		"future version":   {attribute(customop.Attribute{Name: "a", Type: "int", Since: customop.SpecVersion + 1}), "versions go from 1"},
		"reserved, needed": {attribute(customop.Attribute{Name: "a", Type: "int", Since: 1, Reserved: "later"}), "has no default"},
		"same field twice": {customop.Spec{Name: "Op",
			Inputs:     []customop.Value{{Name: "query", Since: 1}},
			Attributes: []customop.Attribute{{Name: "query", Type: "int", Since: 1}}}, "exists already"},
	} {
		err := check(c.spec)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	for snake, want := range map[string][2]string{
		"kv_num_heads": {"KvNumHeads", "KVNumHeads"},
		"position_ids": {"PositionIds", "PositionIDs"},
		"query":        {"Query", "Query"},
	} {
		if c, g := join(snake, capital), join(snake, goWord); c != want[0] || g != want[1] {
			t.Errorf("%s gives %s and %s, want %v", snake, c, g, want)
		}
	}
}
