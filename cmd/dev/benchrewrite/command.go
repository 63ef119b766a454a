package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/buildfiles"
)

// variant is a set of flags, with the name of the folder for what they give.
type variant struct {
	name  string
	flags []string
}

// benchCommand runs the command with each set of flags by turns and prints a
// table of medians. The models stay, each in a folder beside the original.
func benchCommand(command, model string, rounds int, variants []variant) error {
	if err := buildfiles.SetLibraries(); err != nil {
		return err
	}
	runs := make([][]result, len(variants))
	for range rounds {
		for i, v := range variants {
			out := filepath.Join(filepath.Dir(model), v.name, filepath.Base(model))
			if err := os.RemoveAll(filepath.Dir(out)); err != nil {
				return err
			}
			if err := os.Mkdir(filepath.Dir(out), 0o755); err != nil {
				return err
			}
			if b, err := exec.Command("sync").CombinedOutput(); err != nil {
				return fmt.Errorf("sync: %s", b)
			}
			text, r, err := watched(exec.Command(command, append([]string{model, "-o", out, "--weights", "link"}, v.flags...)...), model)
			if err != nil {
				return fmt.Errorf("%s: %w\n%s", v.name, err, text)
			}
			runs[i] = append(runs[i], r)
		}
	}
	fmt.Printf("\n%s, medians of %d\n\n", model, rounds)
	fmt.Println("| | rewrite | processor time | peak memory | written beside the weights |\n|---|---|---|---|---|")
	for i, v := range variants {
		size, err := written(filepath.Join(filepath.Dir(model), v.name), filepath.Dir(model))
		if err != nil {
			return err
		}
		median := func(of func(result) float64) float64 {
			values := make([]float64, rounds)
			for k, r := range runs[i] {
				values[k] = of(r)
			}
			slices.Sort(values)
			return values[rounds/2]
		}
		fmt.Printf("| %s | %.1f s | %.1f s | %.0f MB | %.2f MB |\n", v.name,
			median(func(r result) float64 { return r.Seconds }), median(func(r result) float64 { return r.CPU }),
			median(func(r result) float64 { return float64(r.Memory.Over) / (1 << 20) }), float64(size)/1e6)
	}
	return nil
}

// written returns the bytes of the files in a folder that are not those of the
// original's under another name.
func written(folder, original string) (size int64, err error) {
	var theirs []os.FileInfo
	for i, dir := range []string{original, folder} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return 0, err
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				return 0, err
			}
			switch {
			case i == 0:
				theirs = append(theirs, info)
			case !slices.ContainsFunc(theirs, func(f os.FileInfo) bool { return os.SameFile(f, info) }):
				size += info.Size()
			}
		}
	}
	return size, nil
}
