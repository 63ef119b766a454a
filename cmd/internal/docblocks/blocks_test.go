package docblocks_test

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/recipe"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
)

var (
	root = filepath.Join("..", "..", "..")
	docs = filepath.Join(root, "docs")
)

// block is one block of code, with what a comment before it says.
type block struct {
	line     int
	language string
	text     string
	note     string // "not run: …" in an HTML comment before it
	output   bool   // it follows a program, and has no language: what that prints
}

// blocks reads the blocks of a page.
func blocks(t *testing.T, page string) (list []block) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(docs, page))
	if err != nil {
		t.Fatal(err)
	}
	var open *block
	note, ended, program := "", -9, false
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		switch {
		case open != nil && line == "```":
			list = append(list, *open)
			program = open.language == "python" || open.language == "go"
			open, ended = nil, n
		case open != nil:
			open.text += line + "\n"
		case strings.HasPrefix(line, "```"):
			language := strings.TrimPrefix(line, "```")
			open = &block{line: n, language: language, note: note, output: language == "" && program && n == ended+1}
			note = ""
		case strings.HasPrefix(line, "<!--"):
			note = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(line, "<!--"), "-->"))
		}
	}
	return list
}

// place is the folder in which a page's blocks run.
type place struct {
	t      *testing.T
	folder string
	env    []string
	stdout string // of the last program

	skipped bool // the last program was not run
}

// page is one page with blocks.
type page struct {
	name string // from docs/
	all  string // why make test leaves the page to make test-all
}

var pages = []page{
	{name: "start.md"},
	{name: "using.md"},
	{name: "checking.md"},
	{name: "options.md", all: "other pages have blocks of the same kinds"},
	{name: "audit.md"},
	{name: "choosing.md"},
	{name: "evidence.md"},
	{name: "provenance.md"},
	{name: "lm.md"},
	{name: "scaling.md"},
	{name: "cuda.md"},
	{name: "hosts.md"},
	{name: "changing.md"},
	{name: "../README.md"},
}

// Each page is typed from top to bottom in a clone: what a line needs, a line before it makes.
func TestBlocks(t *testing.T) {
	command := buildCommand(t)
	for _, page := range pages {
		t.Run(page.name, func(t *testing.T) {
			if page.all != "" {
				testsample.All(t, page.all)
			}
			newPlace(t, command).run(page.name)
		})
	}
}

// In a clone a shell finds the command that make built.
func TestEnvironment(t *testing.T) {
	cmd := exec.Command("sh", "-e", "-c", `eval "$(make -s env)"; echo "${PATH%%:*}"; dirname "$ROPE_OPS_LIBRARY"`)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if folders := strings.Fields(string(out)); len(folders) != 2 || folders[0] != folders[1] {
		t.Errorf("the first folder of the PATH is not the library's: %q", folders)
	}
}

// generated pages have tests of their own where they are made.
var generated = []string{"methods.md", "ops.md", "reference.md"}

// Every page with a block is run.
func TestEveryPage(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(docs, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		known := slices.Contains(generated, name) || slices.ContainsFunc(pages, func(p page) bool { return p.name == name })
		if !known && len(blocks(t, name)) > 0 {
			t.Errorf("docs/%s has blocks, and no test runs them", name)
		}
	}
}

// buildCommand builds the command from these sources, and returns its folder.
func buildCommand(t *testing.T) string {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "rope-rewrite"), "../../rope-rewrite").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// newPlace is like a clone in which the command was built: it has the repository's texts and models, a folder build, and
// the command in bin.
func newPlace(t *testing.T, bin string) *place {
	runtime, library := testruntime.Paths(t)
	folder := t.TempDir()
	p := &place{t: t, folder: filepath.Join(folder, "work")}
	if err := os.MkdirAll(filepath.Join(p.folder, "build"), 0o777); err != nil {
		t.Fatal(err)
	}
	clone, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "testdata"} {
		if err := os.Symlink(filepath.Join(clone, name), filepath.Join(p.folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	p.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), customop.RuntimeVariable+"="+runtime, customop.LibraryVariable+"="+library,
		"LD_LIBRARY_PATH="+filepath.Dir(runtime), "HOME="+folder, "GOFLAGS=-mod=mod", "ORT_DISABLE_TELEMETRY=1")
	for _, name := range []string{"GOPATH", "GOMODCACHE", "GOCACHE"} { // of the home that these had
		if out, err := exec.Command("go", "env", name).Output(); err == nil {
			p.env = append(p.env, name+"="+strings.TrimSpace(string(out)))
		}
	}
	return p
}

func (p *place) write(name, text string) {
	p.t.Helper()
	file := filepath.Join(p.folder, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o777); err != nil {
		p.t.Fatal(err)
	}
}

// program runs one, and keeps what it prints.
func (p *place) program(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = p.folder, p.env
	for _, v := range p.env { // LookPath has the test's PATH
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			for _, dir := range filepath.SplitList(path) {
				if file := filepath.Join(dir, name); !strings.Contains(name, "/") && isFile(file) {
					cmd.Path, cmd.Err = file, nil
					break
				}
			}
		}
	}
	var stdout, both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &tee{&stdout, &both}, &both
	err := cmd.Run()
	if p.stdout = stdout.String(); err != nil {
		return errors.New(err.Error() + "\n" + both.String())
	}
	return nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

type tee struct{ a, b *bytes.Buffer }

func (t *tee) Write(b []byte) (int, error) {
	t.a.Write(b)
	return t.b.Write(b)
}

// run runs the blocks of a page.
func (p *place) run(page string) {
	for _, b := range blocks(p.t, page) {
		if reason, not := strings.CutPrefix(b.note, "not run: "); not {
			p.t.Logf("%s:%d is not run: %s", page, b.line, reason)
			continue
		}
		err := p.block(b)
		if code, ends := strings.CutPrefix(b.note, "ends with exit code "); ends {
			if err == nil || !strings.Contains(err.Error(), "exit status "+code) {
				p.t.Errorf("%s:%d does not end with exit code %s: %v", page, b.line, code, err)
			} else if err = said(p.stdout, printedLines(b.text)); err != nil {
				p.t.Errorf("%s:%d: %v", page, b.line, err)
			}
			continue
		}
		if err != nil {
			p.t.Errorf("%s:%d: %v", page, b.line, err)
		}
	}
}

// printedLines are those of a transcript that are no commands.
func printedLines(text string) (lines string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "$ ") {
			lines += line
		}
	}
	return lines
}

func (p *place) block(b block) error {
	if !b.output {
		p.skipped = false
	}
	switch b.language {
	case "":
		if b.output && p.skipped {
			return nil
		}
		if b.output {
			return said(p.stdout, b.text)
		}
		return p.transcript(b.text)
	case "sh":
		return p.program("sh", "-e", "-c", b.text)
	case "go":
		return p.goProgram(b.text)
	case "python":
		python := os.Getenv("ROPE_PYTHON")
		if p.skipped = python == ""; p.skipped {
			p.t.Logf("line %d is not run: ROPE_PYTHON names no Python with onnxruntime, numpy and this project's package (make docs does)", b.line)
			return nil
		}
		p.write("block.py", b.text)
		return p.program(python, "block.py")
	case "c", "cpp":
		return p.native(b)
	case "js":
		modules := os.Getenv("ROPE_NODE_MODULES")
		if modules == "" {
			p.t.Logf("line %d is not run: ROPE_NODE_MODULES names no folder with onnxruntime-node (make docs does)", b.line)
			return nil
		}
		p.write("block.js", b.text)
		// npm's package brings its own ONNX Runtime.
		return p.program("env", "-u", "LD_LIBRARY_PATH", "NODE_PATH="+modules, "node", "block.js")
	case "yaml":
		if !strings.HasPrefix(b.text, "version:") {
			return nil // of another program
		}
		p.write("long.yaml", b.text)
		_, err := recipe.Parse("long.yaml", []byte(b.text))
		return err
	}
	return errors.New("no test knows the language " + b.language)
}

// transcript runs the lines that begin with "$ ", and looks in what they print for the others.
func (p *place) transcript(text string) error {
	text = strings.ReplaceAll(text, "\\\n", " ")
	var wanted string
	ran := false
	check := func() error {
		if !ran {
			return nil
		}
		return said(p.stdout, wanted)
	}
	for line := range strings.Lines(text) {
		command, is := strings.CutPrefix(strings.TrimRight(line, "\n"), "$ ")
		if !is {
			wanted += line
			continue
		}
		if err := check(); err != nil {
			return err
		}
		wanted, ran = "", true
		p.clear(command)
		if err := p.program("sh", "-c", command); err != nil {
			return errors.New(command + ": " + err.Error())
		}
	}
	return check()
}

// outputName is where a command writes.
var outputName = regexp.MustCompile(`rope-rewrite (\S+\.onnx)(?:.*? -o (\S+))?`)

// clear takes away what a command before wrote under the same name: the page's commands do not follow one
// another.
func (p *place) clear(command string) {
	m := outputName.FindStringSubmatch(command)
	if m == nil {
		return
	}
	name := m[2]
	if name == "" {
		name = strings.TrimSuffix(m[1], ".onnx") + ".rope.onnx"
	}
	os.Remove(filepath.Join(p.folder, name))
}

// figure is what differs from machine to machine and from run to run.
var figure = regexp.MustCompile(`[0-9][0-9.]*(e[+-][0-9]+)?%?`)

// said looks for lines in what was printed, in order, whatever their figures are. "…" stands for any.
func said(printed, wanted string) error {
	plain := func(line string) string {
		return strings.Join(strings.Fields(figure.ReplaceAllString(line, "#")), " ")
	}
	var lines []string
	for line := range strings.Lines(printed) {
		lines = append(lines, plain(line))
	}
	for line := range strings.Lines(wanted) {
		want := plain(line)
		if want == "…" || want == "" || strings.HasPrefix(want, "… ") {
			continue
		}
		i := 0
		for i < len(lines) && lines[i] != want {
			i++
		}
		if i == len(lines) {
			return errors.New("it does not print " + strings.TrimSpace(line) + "\nbut\n" + printed)
		}
		lines = lines[i+1:]
	}
	return nil
}

// goProgram runs a whole program, in a module that takes this project from here.
func (p *place) goProgram(text string) error {
	if !strings.HasPrefix(text, "package main") { // a part of one
		p.t.Log("a part of a program is not run")
		return nil
	}
	clone, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	p.write("service/main.go", text)
	sums, err := os.ReadFile(filepath.Join(clone, "go.sum"))
	if err != nil {
		return err
	}
	needs, err := os.ReadFile(filepath.Join(clone, "go.mod"))
	if err != nil {
		return err
	}
	mod := regexp.MustCompile(`(?s)\ntool \(.*?\n\)`).ReplaceAllString(string(needs), "")
	mod = strings.Replace(mod, "module github.com/rope-rewrite/rope-rewrite", "module service", 1)
	mod += "\nrequire github.com/rope-rewrite/rope-rewrite v0.0.0\nreplace github.com/rope-rewrite/rope-rewrite => " + clone + "\n"
	p.write("service/go.mod", mod)
	p.write("service/go.sum", string(sums))
	serves := strings.Contains(text, shownAddress)
	address := ""
	if serves {
		if address, err = freeAddress(); err != nil {
			return err
		}
		p.write("service/main.go", strings.Replace(text, shownAddress, address, 1))
	}
	if err := p.program("sh", "-c", "cd service && go build -o ../program ."); err != nil {
		return err
	}
	if serves {
		return p.serve(address)
	}
	return p.program("./program")
}

// native compiles and runs a program in C or C++ against ONNX Runtime.
func (p *place) native(b block) error {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yalue/onnxruntime_go").Output()
	if err != nil {
		return err
	}
	headers := strings.TrimSpace(string(out))
	compiler := []string{"gcc", "-x", "c"}
	if b.language == "cpp" {
		if headers = os.Getenv("ROPE_ORT_CXX"); headers == "" {
			p.t.Logf("line %d is not run: ROPE_ORT_CXX names no folder with onnxruntime_cxx_api.h (make docs does)", b.line)
			return nil
		}
		compiler = []string{"g++", "-std=c++17", "-x", "c++"}
	}
	p.write("block."+b.language, b.text)
	runtime, _ := testruntime.Paths(p.t)
	args := append(compiler[1:], "-Wall", "-Werror", "-I", headers, "block."+b.language, "-o", "block", "-L", filepath.Dir(runtime), "-lonnxruntime")
	if err := p.program(compiler[0], args...); err != nil {
		return err
	}
	return p.program("./block")
}
