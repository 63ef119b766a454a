package customop

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// environmentFolders are where the user's Python and Node keep an ONNX Runtime: that of pip's
// onnxruntime in the environment that is active, or in the one that python3 on the PATH belongs to,
// and that of npm's onnxruntime-node in NODE_PATH or among node's global packages. The working
// directory's node_modules are not looked at: anybody may have put them there.
func environmentFolders() []string {
	var folders []string
	for _, prefix := range []string{os.Getenv("VIRTUAL_ENV"), os.Getenv("CONDA_PREFIX"), prefixOf("python3"), prefixOf("python")} {
		folders = append(folders, pythonFolders(prefix)...)
	}
	modules := filepath.SplitList(os.Getenv("NODE_PATH"))
	if prefix := prefixOf("node"); prefix != "" {
		modules = append(modules, filepath.Join(prefix, "lib", "node_modules"), filepath.Join(prefix, "node_modules"))
	}
	for _, m := range modules {
		folders = append(folders, nodeFolders(m)...)
	}
	return folders
}

// prefixOf is the folder above the one in which a program of the PATH stands: of bin in most
// systems, of the program itself in Windows.
func prefixOf(program string) string {
	path, err := exec.LookPath(program)
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}
	if runtime.GOOS == "windows" {
		return filepath.Dir(path)
	}
	return filepath.Dir(filepath.Dir(path))
}

// pythonFolders are those of the package onnxruntime below a prefix.
func pythonFolders(prefix string) (folders []string) {
	if !filepath.IsAbs(prefix) {
		return nil
	}
	for _, packages := range []string{"lib/python3*/site-packages", "lib/python3*/dist-packages", "Lib/site-packages"} {
		found, _ := filepath.Glob(filepath.Join(escaped(prefix), filepath.FromSlash(packages), "onnxruntime", "capi"))
		folders = append(folders, found...)
	}
	return folders
}

// nodeFolders are those of the package onnxruntime-node in a folder of modules.
func nodeFolders(modules string) []string {
	if !filepath.IsAbs(modules) {
		return nil
	}
	system := map[string]string{"windows": "win32"}[runtime.GOOS]
	if system == "" {
		system = runtime.GOOS
	}
	processor := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if processor == "" {
		processor = runtime.GOARCH
	}
	found, _ := filepath.Glob(filepath.Join(escaped(modules), "onnxruntime-node", "bin", "napi-v*", system, processor))
	slices.Reverse(found)
	return found
}

// escaped is a path in which Glob takes nothing for a pattern.
func escaped(path string) string {
	if runtime.GOOS == "windows" {
		return path // there \ separates folders
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
