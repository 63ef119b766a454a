package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// trained is the context of the model that docs/choosing.md measures.
const trained = 8192

// screens are the texts that a user sees first, with the commands in them.
func screens(t *testing.T) map[string][]string {
	t.Helper()
	var help, said bytes.Buffer
	if code := run(context.Background(), []string{"--help"}, &help, &said); code != 0 {
		t.Fatalf("--help: exit code %d: %s", code, &said)
	}
	eval, _, err := newRoot().Find([]string{"eval"})
	if err != nil {
		t.Fatal(err)
	}
	read := func(path, from, to string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, text, found := strings.Cut(string(data), from)
		text, _, ended := strings.Cut(text, to)
		if !found || !ended {
			t.Fatalf("%s has no text between %q and %q", path, from, to)
		}
		return text
	}
	return map[string][]string{
		"--help":      commands(help.String()),
		"--help-all":  commands(newRoot().Long),
		"eval --help": commands(eval.Long),
		"make demo":   commands(strings.NewReplacer("%[3]s", "rope-rewrite", "%[4]s", "MODELS").Replace(read("../dev/demo/main.go", "const closing = `", "\n`\n"))),
		"README.md": append(commands(typed(read("../../README.md", "## Try it\n", "With a real model"))),
			commands(cells(read("../../README.md", "## What do you want to do?\n", "\n## ")))...),
	}
}

// typed leaves of a transcript what the user typed.
func typed(text string) string {
	return strings.Join(regexp.MustCompile(`(?m)^\$ (?:.*\\\n)*.*$`).FindAllString(text, -1), "\n")
}

// cells has the commands of a table, one to a line.
func cells(table string) string {
	return strings.ReplaceAll(strings.Join(regexp.MustCompile("`rope-rewrite [^`]*`").FindAllString(table, -1), "\n"), "`", "")
}

var commandLine = regexp.MustCompile(`(?m)(?:^|\s)(?:build/)?rope-rewrite (.+)$|^  (--\S.*)$`)

// commands finds those in a text, without the name of the program; a form of several ([NAME],
// COMMAND, SPEC) is none. Lines of flags alone belong to a model.
func commands(text string) (list []string) {
	text = regexp.MustCompile(`\\\n\s*`).ReplaceAllString(text, "")
	for _, found := range commandLine.FindAllStringSubmatch(text, -1) {
		command, _, _ := strings.Cut(found[1], "  ")
		if found[2] != "" {
			command = "MODEL.onnx " + found[2]
		}
		if !regexp.MustCompile(`\[|COMMAND|SPEC`).MatchString(command) {
			list = append(list, strings.TrimSpace(command))
		}
	}
	return list
}

// promised has, for each command on a first screen, what the model gets by it. One that is
// not here fails the test.
var promised = map[string][]string{
	"model.onnx": {},
	"model.onnx --mask sliding-window:window=4k":  {"mask sliding-window:window=4096"},
	"MODEL.onnx --mask sliding-window:window=4k":  {"mask sliding-window:window=4096"},
	"MODEL.onnx --mask anchor --documents input":  {"mask anchor", "documents input:document_ids"},
	"MODEL.onnx --kv fixed:capacity=8k":           {"kv fixed:capacity=8192,input=cache_length"},
	"--help-all":                                  nil,
	"doctor":                                      nil,
	"methods":                                     nil,
	"inspect model.onnx":                          nil,
	"inspect MODELS/llama__optimum/model.onnx":    nil,
	"validate model.onnx model.rope.onnx":         nil,
	"llama -o llama-fixed --kv fixed:capacity=8k": {"kv fixed:capacity=8192,input=cache_length"},
	"demo llama":                                  nil,
	"validate llama llama-fixed":                  nil,
	"inspect llama-fixed":                         nil,
	"model.onnx --kv fixed:capacity=8k":           {"kv fixed:capacity=8192,input=cache_length"},
	"model.onnx --kv fixed:capacity=8k,type=int8": {"kv fixed:capacity=8192,input=cache_length,type=int8"},
	"model.onnx --mask anchor --documents input":  {"mask anchor", "documents input:document_ids"},
	"audit FOLDER":                                nil,
	"suggest FOLDER --context 16k":                nil,
}

// TestRecommended holds that the commands on first screens do what stands beside them: they
// are run on a model of the measured one's trained context, and a method that is to make a
// context longer reaches twice that, says nothing against it, and was measured there.
func TestRecommended(t *testing.T) {
	onnxruntime, library := testruntime.Paths(t)
	t.Setenv(customop.RuntimeVariable, onnxruntime)
	t.Setenv(customop.LibraryVariable, library)
	folder := filepath.Join(t.TempDir(), "model")
	copyModel(t, folder)
	measured := measuredMethods(t)
	seen := map[string]bool{}
	for screen, list := range screens(t) {
		for _, command := range list {
			want, known := promised[command]
			if !known {
				t.Errorf("%s names %q, and the test does not know what it promises", screen, command)
				continue
			}
			for _, m := range methodsIn(command) {
				if len(m) > 0 && !measured[m] {
					t.Errorf("%s recommends %q, which docs/choosing.md has not found at %d tokens with a lower bound of 80 %%", screen, m, 2*trained)
				}
			}
			if seen[command] {
				continue
			}
			seen[command] = true
			if want == nil {
				parses(t, command)
				continue
			}
			gives(t, command, folder, want)
		}
	}
	for command := range promised {
		if !seen[command] {
			t.Errorf("no screen names %q", command)
		}
	}
}

// methodsIn are the scalings and position maps of a command, as eval names them; the trained
// context of the measured model goes without saying.
func methodsIn(command string) (list []string) {
	for _, found := range regexp.MustCompile(`--(scaling|positions) (\S+)|--method "((?:scaling|positions)[^"]*)"`).FindAllStringSubmatch(command, -1) {
		text := found[3]
		if text == "" {
			text = found[1] + " " + found[2]
		}
		list = append(list, strings.TrimSuffix(text, ",original_max_position_embeddings=8k"))
	}
	return list
}

// parses holds that a sub-command has the flags that are named.
func parses(t *testing.T, command string) {
	t.Helper()
	args := arguments(command)
	root := newRoot()
	sub, rest, err := root.Find(args)
	if err == nil && args[0][0] != '-' && sub == root {
		err = fmt.Errorf("it is no sub-command")
	}
	if err == nil {
		err = sub.ParseFlags(rest)
	}
	if err == nil && sub.HasParent() {
		err = sub.ValidateArgs(sub.Flags().Args())
	}
	if err != nil {
		t.Errorf("%s: %v", command, err)
	}
}

func arguments(command string) (args []string) {
	for i, part := range strings.Split(command, `"`) {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	return args
}

// gives runs a command that writes a model.
func gives(t *testing.T, command, folder string, want []string) {
	t.Helper()
	args := arguments(command)
	out := filepath.Join(t.TempDir(), "out")
	given := filepath.Join(folder, "model.onnx")
	if args[0] == "FOLDER" || args[0] == "llama" {
		given = folder
	} else {
		out += ".onnx"
	}
	args[0] = given
	if i := slices.Index(args, "-o"); i >= 0 {
		args = slices.Delete(args, i, i+2)
	}
	call := func(more ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := run(context.Background(), slices.Concat(args, more), &stdout, &stderr); code != 0 {
			t.Fatalf("%s: exit code %d: %s%s", command, code, &stdout, &stderr)
		}
		return stdout.String()
	}
	call("-o", out)
	written := out
	if given == folder {
		written = filepath.Join(out, "model.onnx")
	}
	var inspected rewrite.Report
	var stdout, stderr bytes.Buffer
	if code := run(context.Background(), []string{"inspect", "--json", written}, &stdout, &stderr); code != 0 {
		t.Fatalf("%s: inspect: %s", command, &stderr)
	}
	if err := json.Unmarshal(stdout.Bytes(), &inspected); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range inspected.Record.Edits {
		got = append(got, strings.TrimSpace(e.What+" "+e.Given))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s gives %q, want %q", command, got, want)
	}
	for _, m := range methodsIn(command) {
		axis, text, _ := strings.Cut(m, " ")
		if axis != rope.ScalingAxis.String() {
			continue
		}
		spec, err := rope.ParseSpec(rope.ScalingAxis, text)
		if err != nil {
			t.Fatal(err)
		}
		if reach := rope.Reachable([]rope.Spec{spec}, rope.Context{Original: trained}); reach < 2*trained {
			t.Errorf("%s reaches %d tokens, less than twice the context", command, reach)
		}
		if given == folder {
			continue
		}
		var planned rewrite.Report
		if err := json.Unmarshal([]byte(call("--dry-run", "--json", "--context", "16k")), &planned); err != nil {
			t.Fatal(err)
		}
		if len(planned.Warnings) > 0 {
			t.Errorf("%s, for twice the context, warns %q", command, planned.Warnings)
		}
	}
}

// copyModel makes a folder of a small model whose configuration says that it was trained on
// as many tokens as the measured one.
func copyModel(t *testing.T, folder string) {
	t.Helper()
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"model.onnx", "config.json"} {
		data, err := os.ReadFile(filepath.Join("../../testdata/models/llama__optimum", name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "config.json" {
			data = bytes.Replace(data, []byte(`"max_position_embeddings": 64`), fmt.Appendf(nil, `"max_position_embeddings": %d`, trained), 1)
		}
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

var measuredRow = regexp.MustCompile("(?m)^\\| `((?:scaling|positions) [^`]+)` \\| (\\d+)K \\| (\\d+) of (\\d+) \\| (\\d+)–(\\d+) % \\|$")

// measuredMethods reads the table of docs/choosing.md: the methods that found enough keys at
// twice the trained context. The interval that stands there must be Clopper and Pearson's.
func measuredMethods(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("../../docs/choosing.md")
	if err != nil {
		t.Fatal(err)
	}
	enough := map[string]bool{}
	rows := measuredRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) == 0 {
		t.Fatal("docs/choosing.md has no table of what was measured for first screens")
	}
	for _, row := range rows {
		var n [5]int
		for i := range n {
			fmt.Sscan(row[i+2], &n[i])
		}
		length, found, keys := 1024*n[0], n[1], n[2]
		low, high := clopperPearson(found, keys)
		if want := [2]int{int(100 * low), int(math.Ceil(100 * high))}; want != [2]int{n[3], n[4]} {
			t.Errorf("%s: the interval of %d of %d is %d–%d %%", row[0], found, keys, want[0], want[1])
		}
		if length >= 2*trained && keys >= 20 && low >= 0.8 {
			enough[row[1]] = true
		}
	}
	return enough
}

// Figures that methods tell of themselves stand in docs/choosing.md, beside the method's name.
func TestMeasuredMethods(t *testing.T) {
	data, err := os.ReadFile("../../docs/choosing.md")
	if err != nil {
		t.Fatal(err)
	}
	page := regexp.MustCompile("\n(- |\\|)").ReplaceAllString(string(data), "\n\n$1") // a row, or a point, by itself
	plain := strings.NewReplacer("-", "", " ", "", "\n", "")
	for m := range rope.Methods() {
		for _, figure := range regexp.MustCompile(`\d+ of \d+`).FindAllString(m.Measured, -1) {
			if !slices.ContainsFunc(strings.Split(page, "\n\n"), func(part string) bool {
				return strings.Contains(plain.Replace(strings.ToLower(part)), plain.Replace(m.Name)) && strings.Contains(part, figure)
			}) {
				t.Errorf("%s: docs/choosing.md does not have %s", m.Name, figure)
			}
		}
	}
}

// clopperPearson is the exact interval of 95 % of a share, by bisection.
func clopperPearson(found, keys int) (low, high float64) {
	atLeast := func(k int, p float64) (sum float64) { // P(X ≥ k)
		for i := k; i <= keys; i++ {
			choose := 1.0
			for j := range i {
				choose *= float64(keys-j) / float64(i-j)
			}
			sum += choose * math.Pow(p, float64(i)) * math.Pow(1-p, float64(keys-i))
		}
		return sum
	}
	solve := func(k int, share float64) float64 {
		from, to := 0.0, 1.0
		for range 60 {
			if p := (from + to) / 2; atLeast(k, p) < share {
				from = p
			} else {
				to = p
			}
		}
		return to
	}
	low, high = 0, 1
	if found > 0 {
		low = solve(found, 0.025)
	}
	if found < keys {
		high = solve(found+1, 0.975)
	}
	return low, high
}

// The intervals of Clopper and Pearson as R's binom.test gives them.
func TestClopperPearson(t *testing.T) {
	for _, c := range []struct {
		found, keys int
		low, high   float64
	}{{20, 20, 0.8315665, 1}, {19, 20, 0.7512672, 0.9987349}, {3, 5, 0.1466328, 0.9472550}, {0, 5, 0, 0.5218238}} {
		if low, high := clopperPearson(c.found, c.keys); math.Abs(low-c.low) > 1e-6 || math.Abs(high-c.high) > 1e-6 {
			t.Errorf("%d of %d: %.7f to %.7f, want %.7f to %.7f", c.found, c.keys, low, high, c.low, c.high)
		}
	}
}
