package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/rope-rewrite/rope-rewrite/internal/buildfiles"
)

// The bounds that docs/results/speed.md promises.
const (
	cpTimes           = 1.5
	cpSeconds         = 3.0
	memoryOver        = 150 << 20
	verificationBound = 5.0
)

// way is a command that is measured, with the name of the folder for what it writes.
type way struct {
	name string
	args func(out string) []string
	runs []run
}

func rewriteCommand() *cobra.Command {
	var rounds int
	var with []string
	var rewriter string
	command := &cobra.Command{
		Use:   "rewrite MODEL...",
		Short: "Measure rewrites: time beside cp, memory beyond the mapped file",
		Long: `Measures the verification and the rewrite of each model beside cp of the same file, with
the file in memory and without, and says whether the promised bounds are met.

With --with it measures rewrites with each set of flags instead, beside linked
weights; their models stay, each in a folder beside the original.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, models []string) error {
			if err := buildfiles.SetLibraries(); err != nil {
				return err
			}
			for _, model := range models {
				var err error
				if len(with) > 0 {
					err = measureWith(rewriter, model, rounds, with)
				} else {
					err = measureBounds(rewriter, model, rounds)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", model, err)
				}
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.IntVar(&rounds, "rounds", 3, "runs of each kind; the median is reported")
	flags.StringArrayVar(&with, "with", nil, "`\"NAME FLAGS\"`: rewrite with FLAGS to the folder NAME beside the model; may be repeated")
	flags.StringVar(&rewriter, "command", "build/rope-rewrite", "the program to measure")
	return command
}

func measureWith(rewriter, model string, rounds int, with []string) error {
	var ways []way
	for _, text := range with {
		words := strings.Fields(text)
		if len(words) == 0 {
			return errors.New("a name is missing, as in --with \"yarn --scaling yarn:factor=2\"")
		}
		ways = append(ways, way{name: words[0], args: func(out string) []string {
			return append([]string{rewriter, model, "-o", out, "--weights", "link"}, words[1:]...)
		}})
	}
	return measure(model, filepath.Dir(model), rounds, false, ways)
}

func measureBounds(rewriter, model string, rounds int) error {
	folder, err := os.MkdirTemp(filepath.Dir(model), ".measured")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	for _, cold := range []bool{true, false} {
		ways := []way{
			{name: "cp", args: func(out string) []string { return []string{"cp", model, out} }},
			{name: "cp, flushed", args: func(out string) []string {
				return []string{"sh", "-c", `cp "$1" "$2" && sync "$2"`, "", model, out}
			}},
			{name: "verification", args: func(string) []string { return []string{rewriter, model, "--dry-run"} }},
			{name: "rewrite, flushed", args: func(out string) []string { return []string{rewriter, model, "-o", out} }},
		}
		if err := measure(model, folder, rounds, cold, ways); err != nil {
			return err
		}
		cp, verification, rewrite := ways[0].seconds(), ways[2].seconds(), ways[3].seconds()
		over := ways[3].median(func(r run) float64 { return float64(r.Memory.Over) })
		fmt.Printf("\nThe rewrite takes %.2f × cp, at most %.1f × cp + %.0f s = %.2f s: %s; the verification at most %.0f s: %s; memory at most %d MB: %s.\n",
			rewrite/cp, cpTimes, cpSeconds, cpTimes*cp+cpSeconds, met(rewrite <= cpTimes*cp+cpSeconds),
			verificationBound, met(verification <= verificationBound), memoryOver>>20, met(over <= memoryOver))
	}
	return nil
}

// measure runs the ways by turns, each into its folder, and prints a table.
func measure(model, folder string, rounds int, cold bool, ways []way) error {
	for range rounds {
		for i := range ways {
			w := &ways[i]
			to := filepath.Join(folder, w.name)
			if err := prepare(model, to, cold); err != nil {
				return err
			}
			args := w.args(filepath.Join(to, filepath.Base(model)))
			r, err := watched(exec.Command(args[0], args[1:]...), model)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			w.runs = append(w.runs, r)
		}
	}
	fmt.Printf("\n%s, %s in memory before, medians of %d\n\n", model, map[bool]string{true: "not", false: "all"}[cold], rounds)
	fmt.Println("| | time | processor time | memory over the file | own | programs and libraries | written beside the weights |\n|---|---|---|---|---|---|---|")
	for _, w := range ways {
		size, err := written(filepath.Join(folder, w.name), filepath.Dir(model))
		if err != nil {
			return err
		}
		mb := func(of func(memory) int64) float64 {
			return w.median(func(r run) float64 { return float64(of(r.Memory)) / (1 << 20) })
		}
		fmt.Printf("| %s | %.2f s | %.2f s | %.0f MB | %.0f MB | %.0f MB | %.2f MB |\n", w.name, w.seconds(), w.median(func(r run) float64 { return r.CPU }),
			mb(func(m memory) int64 { return m.Over }), mb(func(m memory) int64 { return m.Own }), mb(func(m memory) int64 { return m.Files }), float64(size)/1e6)
	}
	return nil
}

func (w way) seconds() float64 { return w.median(func(r run) float64 { return r.Seconds }) }

func (w way) median(of func(run) float64) float64 {
	var values []float64
	for _, r := range w.runs {
		values = append(values, of(r))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "NOT MET"
}

// prepare makes the output's folder anew, lets the disk come to rest, and
// brings the model into memory, or for a cold run out of it.
func prepare(model, folder string, cold bool) error {
	if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o755)); err != nil {
		return err
	}
	if b, err := exec.Command("sync").CombinedOutput(); err != nil {
		return fmt.Errorf("sync: %s", b)
	}
	file, err := os.Open(model)
	if err != nil {
		return err
	}
	defer file.Close()
	if cold {
		return unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
	}
	_, err = io.Copy(io.Discard, file)
	return err
}

// written returns the bytes of the files in a folder that are not those of the
// original's under another name.
func written(folder, original string) (size int64, err error) {
	theirs, err := files(original)
	if err != nil {
		return 0, err
	}
	ours, err := files(folder)
	for _, info := range ours {
		if !slices.ContainsFunc(theirs, func(f os.FileInfo) bool { return os.SameFile(f, info) }) {
			size += info.Size()
		}
	}
	return size, err
}

func files(folder string) (infos []os.FileInfo, err error) {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		info, infoErr := e.Info()
		if infoErr != nil {
			return nil, infoErr
		}
		infos = append(infos, info)
	}
	return infos, err
}
