package docblocks_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
)

const modulePath = "github.com/rope-rewrite/rope-rewrite"

// A program of a user gets the module from a checkout, and from the folder of a release that is a proxy, as
// docs/using.md says. There the op library is inside.
func TestModule(t *testing.T) {
	testsample.All(t, "it copies the sources and builds two programs")
	_, library := testruntime.Paths(t)
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	in := func(folder string, env []string, name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), append([]string{"GOWORK=off", "GOFLAGS="}, env...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	set := func(name string) string { return strings.TrimSpace(in(root, nil, "go", "env", name)) }
	program := func(source string) string {
		t.Helper()
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte(source), 0o666); err != nil {
			t.Fatal(err)
		}
		in(folder, nil, "go", "mod", "init", "example.org/service")
		return folder
	}

	t.Run("checkout", func(t *testing.T) {
		folder := program("package main\n\nimport (\n\t\"fmt\"\n\n\t\"" + modulePath + "/rope\"\n)\n\nfunc main() {\n\tfmt.Println(rope.ParseSpec(rope.ScalingAxis, \"yarn:factor=4\"))\n}\n")
		in(folder, nil, "go", "mod", "edit", "-require", modulePath+"@v"+customop.Version, "-replace", modulePath+"="+root)
		in(folder, nil, "go", "mod", "tidy")
		if out := in(folder, nil, "go", "run", "."); !strings.HasPrefix(out, "yarn:factor=4") {
			t.Errorf("it prints %q", out)
		}
	})
	t.Run("proxy", func(t *testing.T) {
		sources, proxy := t.TempDir(), filepath.Join(t.TempDir(), "goproxy")
		for _, name := range strings.Split(strings.TrimSpace(in(root, nil, "git", "ls-files", "--cached", "--others", "--exclude-standard")), "\n") {
			if strings.HasPrefix(name, "testdata/") || strings.HasPrefix(name, "docs/") {
				continue // large, and no package
			}
			copyFile(t, filepath.Join(root, name), filepath.Join(sources, name))
		}
		copyFile(t, library, filepath.Join(sources, "customop", "bundled", fmt.Sprintf("librope_ops_%s_%s%s", runtime.GOOS, runtime.GOARCH, filepath.Ext(library))))
		in(filepath.Join(root, "scripts", "dist"), []string{"SOURCE_DATE_EPOCH=1700000000", "PYTHONDONTWRITEBYTECODE=1"}, "python3", "-c",
			"import sys, pathlib, pack\nproxy, version, sources = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])\n"+
				"pack.proxy(proxy, version, sources, [(str(p.relative_to(sources)), p.read_bytes(), 0o644) for p in sorted(sources.rglob('*')) if p.is_file()])",
			proxy, customop.Version, sources)

		folder := program("package main\n\nimport (\n\t\"fmt\"\n\n\t\"" + modulePath + "/customop\"\n\t_ \"" + modulePath + "/customop/bundled\"\n)\n\nfunc main() {\n\tfmt.Println(customop.FindLibrary(customop.Options{}))\n}\n")
		env := []string{
			// What was downloaded for this repository is a proxy too. A cache of its own keeps this version out of the user's.
			"GOPROXY=file://" + proxy + ",file://" + set("GOMODCACHE") + "/cache/download," + set("GOPROXY"),
			"GOMODCACHE=" + filepath.Join(t.TempDir(), "modules"), "GOFLAGS=-modcacherw", "GONOSUMDB=*", "GOCACHE=" + set("GOCACHE"),
			"HOME=" + t.TempDir(), customop.LibraryVariable + "=",
		}
		in(folder, env, "go", "get", modulePath+"@v"+customop.Version)
		in(folder, env, "go", "mod", "tidy")
		in(folder, env, "go", "build", "-tags", "bundled", "-o", "service", ".")
		if out := in(folder, env, "./service"); !strings.Contains(out, ".cache") {
			t.Errorf("the library that it finds is %q, want one in the cache of the user", out)
		}
		in(folder, env, "go", "build", "-o", "service", ".")
		if out, _ := exec.Command(filepath.Join(folder, "service")).CombinedOutput(); !strings.Contains(string(out), "built without -tags bundled") {
			t.Errorf("without the tag it prints %q", out)
		}
	})
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if os.IsNotExist(err) {
		return // deleted, and git does not know it yet
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o666); err != nil {
		t.Fatal(err)
	}
}
