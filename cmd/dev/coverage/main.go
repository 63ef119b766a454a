// Command coverage runs the rewriter over every export that
// scripts/coverage/export.py made and writes docs/results/architectures.md: which attention layers of
// which architecture, exported by which route, are verified, and why
// others are not.
//
//	go run ./cmd/dev/coverage build/coverage
//	go run ./cmd/dev/coverage -only 'gemma*__ts17*' build/coverage
//
// Exports that a run did not look at keep their results (results.json in
// the folder of the exports).
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/rope-rewrite/rope-rewrite/cmd/dev/internal/coverage"
	"github.com/rope-rewrite/rope-rewrite/internal/buildfiles"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

func main() {
	rewrite.ServeIfWorker()
	only := flag.String("only", "*", "exports to look at, as `PATTERN` of ARCHITECTURE__ROUTE; several with commas")
	kept := flag.Bool("kept", false, "only exports of which the last run left a layer unchanged, and new ones")
	jobs := flag.Int("jobs", 1, "exports looked at side by side")
	title := flag.String("title", "Architectures and routes", "first line of the page")
	out := flag.String("o", filepath.Join("docs", "results", "architectures.md"), "`FILE` to write the table to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "coverage: name the folder that scripts/coverage/export.py wrote to; make coverage does")
		os.Exit(2)
	}
	if err := run(ctx, flag.Arg(0), strings.Split(*only, ","), *kept, *jobs, *title, *out); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}

// run looks at the exports of a folder and writes the table. The error says how
// many patched models were wrong, when any was.
func run(ctx context.Context, folder string, only []string, unfinished bool, jobs int, title, out string) error {
	if err := buildfiles.SetLibraries(); err != nil {
		return err
	}
	records, err := filepath.Glob(filepath.Join(folder, "*__*", "export.json"))
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return fmt.Errorf("%s holds no exports; scripts/coverage/README.md says how they are made", folder)
	}
	kept := filepath.Join(folder, "results.json")
	results := map[string]coverage.Result{}
	if data, err := os.ReadFile(kept); err == nil {
		if err := json.Unmarshal(data, &results); err != nil {
			return fmt.Errorf("%s: %w; remove it", kept, err)
		}
	}
	todo := choose(results, records, only, unfinished)
	look(ctx, folder, todo, jobs, results)
	data, err := json.MarshalIndent(results, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(kept, data, 0o666); err != nil {
		return err
	}
	page, err := coverage.Page(title, results)
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, []byte(page), 0o666); err != nil {
		return err
	}
	fmt.Println(coverage.Summary(results) + " " + out + " has the table.")
	wrong := 0
	for _, r := range results {
		if r.Wrong != "" {
			wrong++
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d patched models are wrong", wrong)
	}
	return ctx.Err()
}

// choose drops the results of exports that are gone, and names those to look at.
func choose(results map[string]coverage.Result, records, only []string, unfinished bool) (todo []string) {
	present := map[string]bool{}
	for _, record := range records {
		name := filepath.Base(filepath.Dir(record))
		present[name] = true
		last, known := results[name]
		matches := slices.ContainsFunc(only, func(p string) bool { ok, _ := filepath.Match(p, name); return ok })
		whole := known && last.Layers > 0 && last.Rewritten == last.Layers && last.Wrong == ""
		if last.Skipped != "" || matches && !(unfinished && whole) { // there may be an export by now
			todo = append(todo, name)
		}
	}
	for name := range results {
		if !present[name] {
			delete(results, name)
		}
	}
	return todo
}

// look looks at exports, so many side by side, and notes what it saw in results.
func look(ctx context.Context, folder string, todo []string, jobs int, results map[string]coverage.Result) {
	names := make(chan string)
	var done sync.WaitGroup
	var mutex sync.Mutex
	for range max(jobs, 1) {
		done.Go(func() {
			for name := range names {
				r := coverage.Look(ctx, filepath.Join(folder, name), os.Args[0])
				if ctx.Err() != nil {
					return
				}
				mutex.Lock()
				results[name] = r
				fmt.Printf("%-36s %s\n", name, r.Line())
				mutex.Unlock()
			}
		})
	}
	for _, name := range todo {
		select {
		case names <- name:
		case <-ctx.Done():
		}
	}
	close(names)
	done.Wait()
}
