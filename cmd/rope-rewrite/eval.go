package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/provenance"
)

// evalCommand is rope-rewrite eval MODEL.
type evalCommand struct {
	*cli.Common
	tasks    []string
	lengths  cli.TokenList
	depths   string
	samples  sampleCount
	windows  int
	methods  []string
	context  cli.TokenCount
	text     string
	haystack string
	forms    []string
	plain    bool
	seed     uint64
	threads  int
	memory   string
	checks   []string
	output   string
	prompts  bool
	resume   bool
}

// evalResult is what the command finds, as printed by --json and in results.json.
type evalResult struct {
	Variants []evalVariant `json:"variants"`
	Seed     uint64        `json:"seed"`
	evaluation.Summary
	Checks []evalCheck `json:"checks,omitempty"`
	Notes  []string    `json:"notes,omitempty"` // what was asked for and not done
}

type evalVariant struct {
	Name    string            `json:"name"`
	Model   string            `json:"model"`
	Methods []provenance.Edit `json:"methods"` // what was done to the model, every parameter resolved
}

type evalCheck struct {
	Check   string `json:"check"`
	Variant string `json:"variant"`
	Holds   bool   `json:"holds"`
	Found   string `json:"found"`
}

func newEval(c *cli.Common) *cobra.Command {
	e := &evalCommand{Common: c}
	cmd := &cobra.Command{
		Use:   "eval MODEL [MODEL ...] [--method SPEC ...] [-o DIR]",
		Short: "Measure long-context quality: retrieval tasks and perplexity, with and without a method",
		Long: `Measures long-context quality with retrieval tasks and perplexity. It compares
several methods (--method none is the unchanged model) or several models. Shares
have 95 % confidence intervals (Wilson; where several samples ask about one
text, the text is the unit). Prompts follow the model's chat template, if it has
one, and answers are decoded greedily.

  rope-rewrite eval FOLDER --lengths 2k,8k,16k --method none \
      --method "AXIS SPEC" -o results

AXIS is scaling, positions or mask; rope-rewrite methods lists every SPEC.

` + taskList() + `
From niah_single_1 on the tasks are RULER's, under RULER's names; ruler stands
for all thirteen. Their scores are shares of what was asked for. They place what
they hide at random, so --depths does not apply and --samples counts the samples
of each length.

With -o, each sample is saved as soon as it is measured, and --resume continues
an interrupted run. Exit code 1 when a --check does not hold.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.ErrNoModel
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return e.run(cmd, args) },
	}
	e.Prints(cmd, evalResult{})
	f := cmd.Flags()
	f.SortFlags = false
	e.lengths = cli.TokenList{2048, 4096, 8192, 16384}
	f.StringSliceVar(&e.tasks, "task", []string{"passkey"}, "`TASKS`, separated by commas: "+strings.Join(evaluation.TaskNames(), ", ")+"; ruler is the thirteen from niah_single_1 to qa_2")
	f.Var(&e.lengths, "lengths", "lengths of prompts and windows in `TOKENS`, separated by commas")
	f.StringVar(&e.depths, "depths", "5", "where in the text the answer is hidden: a `NUMBER` of places, or the places, e.g. 30% or 10%,90%")
	e.samples.all = 20
	f.Var(&e.samples, "samples", "`NUMBER` of samples of each task, length and depth; 20,12k:3 takes 3 at 12K")
	f.StringArrayVar(&e.methods, "method", nil, "`METHOD` to measure, as \"AXIS SPEC\", several separated by semicolons; none means the unchanged model. Repeatable.")
	f.Var(&e.context, "context", "length in `TOKENS` that methods are meant for; they derive missing parameters from it (default: the largest of --lengths)")
	f.StringVar(&e.text, "text", "", "measure perplexity on the text in `FILE`")
	f.IntVar(&e.windows, "windows", 8, "`NUMBER` of windows of the text; windows do not overlap, so a short text has fewer")
	f.StringVar(&e.haystack, "haystack", "", "hide answers in the text in `FILE`: of passkey, needles, variables, and of RULER's tasks in prose")
	f.StringArrayVar(&e.forms, "form", nil, "`TASK=FILE`: use the prompt in FILE for TASK; TASK=- prints the built-in one; ruler uses the prompts of RULER's authors. Repeatable.")
	f.BoolVar(&e.plain, "plain", false, "ask in plain text, without the chat template")
	f.Uint64Var(&e.seed, "seed", 1, "random seed `N`; the same samples for every model")
	f.IntVar(&e.threads, "threads", 0, "`NUMBER` of threads for one operator; 0 means ONNX Runtime's default")
	f.StringVar(&e.memory, "memory", "", "largest `SIZE` of the caches, e.g. 4GB")
	f.StringArrayVar(&e.checks, "check", nil, "`CONDITION` that every model except the unchanged one must meet, e.g. passkey@12K>=0.9 (the lower end of the interval counts) or perplexity@8K<=15. Repeatable.")
	f.StringVarP(&e.output, "output", "o", "", "write results.json, report.html, pictures and samples to `DIR`")
	f.BoolVar(&e.prompts, "prompts", false, "also save the tokens of each prompt, so that another program can repeat a sample")
	f.BoolVar(&e.resume, "resume", false, "continue an interrupted evaluation")
	return cmd
}

// taskList says what each task asks a model to do.
func taskList() string {
	var b strings.Builder
	for _, t := range task.Tasks() {
		fmt.Fprintf(&b, "  %-16s %s\n", t.Name, t.About)
	}
	fmt.Fprintf(&b, "  %-16s %s\n", evaluation.Perplexity, "predict --text")
	return b.String()
}

func (e *evalCommand) run(cmd *cobra.Command, models []string) (err error) {
	if printed, err := e.printForm(cmd); printed || err != nil {
		return err
	}
	plan, checks, err := e.plan()
	if err != nil {
		return err
	}
	variants, err := e.variants(models)
	if err != nil {
		return err
	}
	for _, model := range models {
		if err := cli.SayLeftOut(cmd.ErrOrStderr(), model); err != nil {
			return err
		}
	}
	if err := customop.InitRuntime(e.Runtime); err != nil {
		return err
	}
	progress := cli.NewProgress(cmd.ErrOrStderr())
	defer progress.Done()
	result := &evalResult{Seed: e.seed}
	var samples []evaluation.Sample
	options := evaluation.Options{
		Model:    lm.Options{Threads: e.threads, OpsLibrary: e.Library, Require: true},
		Progress: progress.Say,
		Prompts:  e.prompts,
		Sample:   func(s evaluation.Sample) error { samples = append(samples, s); return nil },
		Methods: func(v evaluation.Variant, methods []provenance.Edit) {
			if !slices.ContainsFunc(result.Variants, func(r evalVariant) bool { return r.Name == v.Name }) {
				result.Variants = append(result.Variants, evalVariant{v.Name, v.Model, append([]provenance.Edit{}, methods...)})
			}
		},
	}
	if e.output != "" {
		progress.Say("reading the files of the models")
		journal, done, err := e.journal(cmd.Context(), plan, variants)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, journal.Close()) }()
		samples, options.Done = done, done
		options.Sample = func(s evaluation.Sample) error { samples = append(samples, s); return journal.Add(s) }
	}
	failed := evaluation.Run(cmd.Context(), plan, variants, options)
	progress.Done()
	if failed != nil && len(samples) == 0 {
		return failed
	}
	result.Summary = evaluation.Summarise(samples, plan.Lengths)
	if failed == nil {
		result.check(checks, variants)
		result.Notes = plan.Notes(result.Summary)
	}
	if err := e.write(result, plan); err != nil {
		return errors.Join(failed, err)
	}
	if err := e.Show(cmd, result, func(w *cli.Writer) {
		evalTables(w, result)
		if e.output != "" {
			w.Line("The report is %s.", filepath.Join(e.output, "report.html"))
		}
	}); err != nil {
		return errors.Join(failed, err)
	}
	if failed != nil && e.output != "" {
		return fmt.Errorf("%w; the results so far are in %s, and --resume continues", failed, e.output)
	}
	if failed != nil {
		return failed
	}
	if slices.ContainsFunc(result.Checks, func(c evalCheck) bool { return !c.Holds }) {
		return cli.Exit(cli.ExitFailed, cli.ErrReported)
	}
	return nil
}

// check applies the conditions to every variant except the unchanged model, which is there for
// comparison; alone it must meet them too.
func (r *evalResult) check(checks []evaluation.Check, variants []evaluation.Variant) {
	for _, c := range checks {
		for _, v := range variants {
			if v.AsIs && slices.ContainsFunc(variants, func(v evaluation.Variant) bool { return !v.AsIs }) {
				continue
			}
			holds, found := c.Holds(r.Summary, v.Name)
			r.Checks = append(r.Checks, evalCheck{c.Text, v.Name, holds, found})
		}
	}
}

// plan turns the flags into what is measured.
func (e *evalCommand) plan() (p evaluation.Plan, checks []evaluation.Check, err error) {
	p = evaluation.Plan{Tasks: task.Expand(e.tasks), Samples: e.samples.all, SamplesAt: e.samples.at, Windows: e.windows, Seed: e.seed, Plain: e.plain}
	for _, l := range e.lengths {
		if l < 1 || l > math.MaxInt32 {
			return p, nil, cli.Usage("--lengths %d: expected numbers of tokens above 0", l)
		}
		p.Lengths = append(p.Lengths, int(l))
	}
	slices.Sort(p.Lengths)
	if p.Depths, err = parseDepths(e.depths); err != nil {
		return p, nil, cli.Usage("--depths %w", err)
	}
	switch {
	case e.windows < 1 || e.threads < 0:
		return p, nil, cli.Usage("--windows must be above 0, and --threads at least 0")
	case e.resume && e.output == "":
		return p, nil, cli.Usage("--resume needs the folder of the interrupted evaluation; name it with -o")
	case slices.Contains(e.tasks, evaluation.Perplexity) && e.text == "":
		return p, nil, cli.Usage("perplexity needs a text; name a file with --text")
	}
	for length := range e.samples.at {
		if !slices.Contains(p.Lengths, length) {
			return p, nil, cli.Usage("--samples: %d is not one of --lengths", length)
		}
	}
	if e.memory != "" {
		size, err := cli.ParseSize(e.memory)
		if err != nil {
			return p, nil, cli.Usage("--memory %w", err)
		}
		p.Memory = int64(size)
	}
	for _, f := range []struct {
		flag, path string
		into       *string
	}{{"--text", e.text, &p.Text}, {"--haystack", e.haystack, &p.Haystack}} {
		if f.path == "" {
			continue
		}
		if *f.into, err = cli.ReadText(f.flag, f.path); err != nil {
			return p, nil, err
		}
	}
	if p.Forms, err = e.formsOf(p.Tasks); err != nil {
		return p, nil, err
	}
	if err := p.Check(); err != nil {
		return p, nil, cli.Usage("%w", err)
	}
	for _, text := range e.checks {
		c, err := evaluation.ParseCheck(text)
		if err == nil {
			err = c.In(p)
		}
		if err != nil {
			return p, nil, cli.Usage("--check %w", err)
		}
		checks = append(checks, c)
	}
	return p, checks, nil
}

// parseDepths reads a number of depths, the middles of equal parts, or percentages.
func parseDepths(text string) (list []float64, err error) {
	if n, err := strconv.Atoi(text); err == nil {
		if n < 1 || n > 100 {
			return nil, fmt.Errorf("%d: expected a number from 1 to 100", n)
		}
		for i := range n {
			list = append(list, (float64(i)+0.5)/float64(n))
		}
		return list, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		number, percent := strings.CutSuffix(strings.TrimSpace(part), "%")
		x, err := strconv.ParseFloat(number, 64)
		if err != nil || !percent || !(x >= 0 && x <= 100) {
			return nil, fmt.Errorf("%q: expected a number such as 5, or places such as 10%%,50%%,90%%", short.Name(text))
		}
		list = append(list, x/100)
	}
	return list, nil
}

// variants are the models with each of the methods.
func (e *evalCommand) variants(models []string) (list []evaluation.Variant, err error) {
	base, err := e.Options()
	if err != nil {
		return nil, err
	}
	if base, err = base.FindLibraries(); err != nil {
		return nil, err
	}
	base.Context.Length = int64(e.context)
	if e.context == 0 {
		base.Context.Length = int64(slices.Max(e.lengths))
	}
	methods := e.methods
	if len(methods) == 0 {
		methods = []string{"none"}
	}
	for _, model := range models {
		if _, err := os.Stat(model); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no model %s: give an .onnx file or a folder with one", model)
		}
		for _, method := range methods {
			v := evaluation.Variant{Name: method, Model: model, Patch: base, AsIs: method == "none"}
			if len(models) > 1 {
				v.Name = filepath.Base(strings.TrimSuffix(model, "/model.onnx"))
				if len(e.methods) > 0 {
					v.Name += " " + method
				}
			}
			if !v.AsIs {
				if err := cli.AddMethod(&v.Patch, method); err != nil {
					return nil, cli.Usage("--method %w", err)
				}
			}
			if slices.ContainsFunc(list, func(w evaluation.Variant) bool { return w.Name == v.Name }) {
				return nil, cli.Usage("%q would be evaluated twice; give each method once, and each model a different name", short.Name(v.Name))
			}
			list = append(list, v)
		}
	}
	return list, nil
}

// journal opens the file of samples in the output folder.
func (e *evalCommand) journal(ctx context.Context, plan evaluation.Plan, variants []evaluation.Variant) (*evaluation.Journal, []evaluation.Sample, error) {
	if err := os.MkdirAll(e.output, 0o777); err != nil {
		return nil, nil, err
	}
	about, err := evaluation.NewAbout(ctx, plan, variants, int64(e.context))
	if err != nil {
		return nil, nil, err
	}
	return evaluation.OpenJournal(filepath.Join(e.output, "samples.jsonl"), about, e.resume)
}
