package customop

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
)

// installed is an ONNX Runtime as who installed it knows it.
type installed struct {
	name    string // of the package: onnxruntime-gpu
	version string // empty where nothing tells
	upgrade string // what brings a newer one, as a clause
}

// pythonVersion and nodeVersion are how the packages write their own version down.
var (
	pythonVersion = regexp.MustCompile(`(?m)^__version__ = "([0-9]+\.[0-9.]*[0-9])`)
	nodeVersion   = regexp.MustCompile(`"version": *"([0-9]+\.[0-9.]*[0-9])`)
)

// installedAt says what the ONNX Runtime at a path is: by its package, which pip's wheels before 1.20 had no
// library in, else by the library's name. One number in a name says nothing: libonnxruntime.so.1.
func installedAt(path string) installed {
	folder := filepath.Dir(path)
	if packages := filepath.Dir(filepath.Dir(folder)); filepath.Base(folder) == "capi" {
		if version := versionIn(filepath.Join(filepath.Dir(folder), "__init__.py"), pythonVersion); version != "" {
			name := pythonPackage(packages, version)
			return installed{name, version, "run pip install --upgrade " + name + " in that environment (Python 3.11 or newer)"}
		}
	}
	if modules := filepath.Clean(filepath.Join(folder, "..", "..", "..", "..")); filepath.Base(modules) == "onnxruntime-node" {
		if version := versionIn(filepath.Join(modules, "package.json"), nodeVersion); version != "" {
			return installed{"onnxruntime-node", version, "run npm install -g onnxruntime-node@latest"}
		}
	}
	found := installed{name: "ONNX Runtime", upgrade: "replace it, or run pip install onnxruntime in the environment that is active"}
	if version := versionOf(resolved(path)); len(version) > 1 {
		found.version = dotted(version)
	}
	return found
}

// versionIn is what a pattern finds in a small file, "" where it finds nothing.
func versionIn(path string, pattern *regexp.Regexp) string {
	text, err := configfile.Read(path, configfile.Config)
	if err != nil {
		return ""
	}
	if found := pattern.FindSubmatch(text); found != nil {
		return string(found[1])
	}
	return ""
}

// pythonPackage is the name of the package that brought the module onnxruntime of a version: onnxruntime,
// onnxruntime-gpu and others have the same module.
func pythonPackage(folder, version string) string {
	suffix := "-" + version + ".dist-info"
	records, _ := filepath.Glob(filepath.Join(escaped(folder), "onnxruntime*"+suffix))
	for _, record := range records {
		name := strings.TrimSuffix(filepath.Base(record), suffix)
		if !strings.HasPrefix(name, "onnxruntime_genai") && !strings.HasPrefix(name, "onnxruntime_extensions") {
			return strings.ReplaceAll(name, "_", "-")
		}
	}
	return "onnxruntime"
}

// tooOld says that the ONNX Runtime of a folder is older than MinRuntime, nil where it is not or nothing tells.
func tooOld(folder string) *unfitError {
	found := installedAt(cmp.Or(newestIn(folder, "onnxruntime"), filepath.Join(folder, fileName("onnxruntime"))))
	if found.version == "" || slices.Compare(numbers(found.version), numbers(MinRuntime)) >= 0 {
		return nil
	}
	return &unfitError{
		problem: found.name + " " + found.version + " is older than " + MinRuntime,
		advice:  found.upgrade + ", or " + setRuntime,
	}
}

func numbers(version string) (list []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		list = append(list, n)
	}
	return list
}
