package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/recommend"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// suggestCommand is rope-rewrite suggest MODEL.
type suggestCommand struct {
	*cli.Common
	context cli.TokenCount
	task    string
	samples int
	methods []string
	text    string
	plain   bool
	seed    uint64
	threads int
	memory  string
	output  string
	resume  bool

	plan     evaluation.Plan
	model    string
	base     rewrite.Options // with the type of the caches of all that is measured
	done     []evaluation.Sample
	journal  *evaluation.Journal
	progress *cli.Progress
}

// suggestDepths is in how many places of a text answers stand.
const suggestDepths = 5

// suggestResult is what the command finds, as printed by --json.
type suggestResult struct {
	Model     string `json:"model"`
	CacheType string `json:"cache_type,omitempty"`
	recommend.Result
	Command string `json:"command,omitempty"`
}

func newSuggest(c *cli.Common) *cobra.Command {
	s := &suggestCommand{Common: c}
	cmd := &cobra.Command{
		Use:   "suggest MODEL --context TOKENS [-o DIR]",
		Short: "Measure which method a model needs for a context, if any",
		Long: `Asks the unchanged model questions about texts of growing length, up to
--context. If it fails there, methods that need no fine-tuning are measured on
the same texts: all of them with a few questions, the better ones with more. The
best one is compared with the unchanged model, also on shorter texts. What was
not measured is not suggested.

  rope-rewrite suggest FOLDER --context 12k -o results

This takes minutes to hours: with -o each answer is saved as it comes, and
--resume continues an interrupted run.`,
		Args: cli.OneModel,
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd, args[0]) },
	}
	s.Prints(cmd, suggestResult{})
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(&s.context, "context", "length in `TOKENS` that the model is wanted for")
	f.StringVar(&s.task, "task", "passkey", "`TASK` that is asked, one of those of eval with answers")
	f.IntVar(&s.samples, "samples", 20, "`NUMBER` of questions for each method and length that decide")
	f.StringArrayVar(&s.methods, "method", nil, "measure this `METHOD`, as \"AXIS SPEC\", several separated by semicolons, in place of those that suggest chooses. Repeatable.")
	f.StringVar(&s.text, "text", "", "also compare how well the text in `FILE` is predicted")
	f.BoolVar(&s.plain, "plain", false, "ask in plain text, without the chat template")
	f.Uint64Var(&s.seed, "seed", 1, "random seed `N`")
	f.IntVar(&s.threads, "threads", 0, "`NUMBER` of threads for one operator; 0 means ONNX Runtime's default")
	f.StringVar(&s.memory, "memory", "", "largest `SIZE` of the caches, e.g. 4GB; caches of 16 or 8 bits are measured where those of the model are larger")
	f.StringVarP(&s.output, "output", "o", "", "write samples and results.json to `DIR`")
	f.BoolVar(&s.resume, "resume", false, "continue an interrupted run")
	return cmd
}

func (s *suggestCommand) run(cmd *cobra.Command, model string) (err error) {
	s.model = model
	if err := s.prepare(); err != nil {
		return err
	}
	if err := cli.SayLeftOut(cmd.ErrOrStderr(), model); err != nil {
		return err
	}
	if err := customop.InitRuntime(s.Runtime); err != nil {
		return err
	}
	s.progress = cli.NewProgress(cmd.ErrOrStderr())
	defer s.progress.Done()
	if s.output != "" {
		if err := s.open(cmd.Context()); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.journal.Close()) }()
	}
	file, err := lm.File(model)
	if err != nil {
		return err
	}
	config := modelconfig.Read(file, false)
	search := recommend.Search{
		Task: s.task, Trained: max(config.Original, int64(config.Positions().Value)), Context: int64(s.context), Samples: s.samples,
		Candidates: s.methods, Perplexity: s.text != "", Measure: s.measure,
	}
	found, failed := search.Run(cmd.Context())
	s.progress.Done()
	if failed != nil && s.output != "" {
		return fmt.Errorf("%w; the answers so far are in %s, and --resume continues", failed, s.output)
	}
	if failed != nil {
		return failed
	}
	result := &suggestResult{Model: model, CacheType: s.base.Cache.Type, Result: found}
	if found.Best != "" {
		result.Command = s.command(found.Best)
	}
	if s.output != "" {
		if err := s.write(result); err != nil {
			return err
		}
	}
	return s.Show(cmd, result, func(w *cli.Writer) { suggestText(w, result) })
}

// prepare checks the flags, and makes of them what is measured.
func (s *suggestCommand) prepare() (err error) {
	switch {
	case s.context < 1 || s.context > math.MaxInt32:
		return cli.Usage("suggest needs the length that the model is wanted for: give --context TOKENS, such as --context 16k")
	case s.samples < suggestDepths || s.samples%suggestDepths != 0:
		return cli.Usage("--samples %d: expected a multiple of %d, which is in how many places of a text answers stand", s.samples, suggestDepths)
	case s.task == evaluation.Perplexity:
		return cli.Usage("--task perplexity asks nothing; give a task with answers, and --text FILE to measure perplexity beside it")
	case s.threads < 0:
		return cli.Usage("--threads must be at least 0")
	case s.resume && s.output == "":
		return cli.Usage("--resume needs the folder of the interrupted run; name it with -o")
	}
	if _, err := os.Stat(s.model); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no model %s: give an .onnx file or a folder with one", s.model)
	}
	s.plan = evaluation.Plan{Tasks: []string{s.task}, Lengths: []int{int(s.context)}, Samples: s.samples, Windows: 8, Seed: s.seed, Plain: s.plain}
	for i := range suggestDepths {
		s.plan.Depths = append(s.plan.Depths, (float64(i)+0.5)/suggestDepths)
	}
	if t, err := task.Of(s.task); err == nil && t.Ruler { // it draws the places itself
		s.plan.Depths = []float64{0}
	}
	if s.text != "" {
		if s.plan.Text, err = cli.ReadText("--text", s.text); err != nil {
			return err
		}
	}
	if s.memory != "" {
		size, err := cli.ParseSize(s.memory)
		if err != nil {
			return cli.Usage("--memory %w", err)
		}
		s.plan.Memory = int64(size)
	}
	if err := s.plan.Check(); err != nil {
		return cli.Usage("%w", err)
	}
	for _, method := range s.methods {
		if err := cli.AddMethod(&rewrite.Options{}, method); err != nil {
			return cli.Usage("--method %w", err)
		}
	}
	if s.base, err = s.Options(); err != nil {
		return err
	}
	if s.base, err = s.base.FindLibraries(); err != nil {
		return err
	}
	s.base.Context.Length = int64(s.context)
	return nil
}

// open opens the file of answers in the output folder. It belongs to the model and the questions: which methods
// are asked follows from the answers.
func (s *suggestCommand) open(ctx context.Context) (err error) {
	if err := os.MkdirAll(s.output, 0o777); err != nil {
		return err
	}
	s.progress.Say("reading the files of the model")
	plain := evaluation.Variant{Name: recommend.Unchanged, Model: s.model}
	about, err := evaluation.NewAbout(ctx, s.plan, []evaluation.Variant{plain}, int64(s.context))
	if err != nil {
		return err
	}
	s.journal, s.done, err = evaluation.OpenJournal(filepath.Join(s.output, "samples.jsonl"), about, s.resume)
	return err
}

// measure asks one method's questions. Where the caches are larger than they may be, smaller ones are taken.
func (s *suggestCommand) measure(ctx context.Context, ask recommend.Ask) ([]evaluation.Sample, error) {
	var large *evaluation.MemoryError
	for {
		err := s.ask(ctx, ask)
		next := smaller(s.base.Cache.Type)
		if !errors.As(err, &large) || next == "" {
			return s.done, err
		}
		s.base.Cache.Type = next
	}
}

// smaller is the next smaller type of a cache.
func smaller(cacheType string) string {
	switch cacheType {
	case "":
		return "float16"
	case "float16":
		return "int8"
	}
	return ""
}

func (s *suggestCommand) ask(ctx context.Context, ask recommend.Ask) error {
	v := evaluation.Variant{Name: ask.Method, Model: s.model, Patch: s.base, AsIs: ask.Method == recommend.Unchanged}
	if !v.AsIs {
		if err := cli.AddMethod(&v.Patch, ask.Method); err != nil {
			return err
		}
	}
	plan := s.plan
	plan.Tasks, plan.Lengths = ask.Tasks, ask.Lengths
	plan.Samples = max(ask.Samples/len(plan.Depths), 1)
	return evaluation.Run(ctx, plan, []evaluation.Variant{v}, evaluation.Options{
		Model: lm.Options{Threads: s.threads, OpsLibrary: s.Library, Require: true},
		Done:  s.done, Progress: s.progress.Say,
		Sample: func(x evaluation.Sample) error {
			s.done = append(s.done, x)
			if s.journal == nil {
				return nil
			}
			return s.journal.Add(x)
		},
	})
}

// command is what applies a method to the model.
func (s *suggestCommand) command(method string) string {
	text := fmt.Sprintf("rope-rewrite %s %s --context %d", s.model, recommend.Flags(method), int64(s.context))
	if cacheType := s.base.Cache.Type; cacheType != "" {
		text += " --kv growing:type=" + cacheType
	}
	return text
}

// write puts the result into the output folder.
func (s *suggestCommand) write(r *suggestResult) error {
	var b bytes.Buffer
	if err := cli.PrintJSON(&b, r); err != nil {
		return err
	}
	return configfile.Write(filepath.Join(s.output, "results.json"), b.Bytes(), 0o644)
}

// suggestText says what was found.
func suggestText(w *cli.Writer, r *suggestResult) {
	length := func(n int64) string { return evaluation.Tokens(int(n)) }
	share := func(method string, n int64) string {
		c, measured := r.Share(method, int(n))
		if !measured {
			return "was not measured"
		}
		return fmt.Sprintf("%.0f%% (%.0f-%.0f%%)", 100*c.Score, 100*c.Low, 100*c.High)
	}
	trained := "Its configuration does not say for how many tokens the model was trained."
	if r.Trained > 0 {
		trained = fmt.Sprintf("The model was trained for %s tokens, by its configuration.", length(r.Trained))
	}
	w.Line("%s", cli.Wrap(trained, "  "))
	w.Line("")
	w.Line("%s, share found with its 95 %% interval", r.Task)
	var names []string
	for _, c := range r.Measured {
		if !slices.Contains(names, c.Variant) {
			names = append(names, c.Variant)
		}
	}
	for _, name := range names {
		w.Line("%s", cli.Wrap(evaluation.ShortName(name)+suggestShares(r, name), "    "))
	}
	for _, l := range r.Left {
		w.Line("%s", cli.Wrap(evaluation.ShortName(l.Method)+" was not measured: "+l.Reason, "    "))
	}
	w.Line("")
	if r.Verdict != recommend.NotUnderstood {
		w.Line("%s", cli.Wrap(suggestEffective(r), "  "))
	}
	switch r.Verdict {
	case recommend.NotUnderstood:
		w.Line("%s", cli.Wrap("The unchanged model fails at these questions about short texts, so nothing can be told. Give another --task, or measure with eval --form.", "  "))
	case recommend.NothingNeeded:
		w.Line("%s", cli.Wrap(fmt.Sprintf("It needs no method for %s tokens.", length(r.Context)), "  "))
	case recommend.NothingHelps:
		w.Line("%s", cli.Wrap(fmt.Sprintf("No method that was measured is better at %s tokens, so none is suggested.", length(r.Context)), "  "))
	case recommend.Method:
		w.Line("%s", cli.Wrap(fmt.Sprintf("At %s tokens the unchanged model finds %s, %s %s.", length(r.Context),
			share(recommend.Unchanged, r.Context), evaluation.ShortName(r.Best), share(r.Best, r.Context)), "  "))
		for _, c := range r.Measured {
			if c.Variant == r.Best && int64(c.Length) < r.Context {
				n := int64(c.Length)
				w.Line("%s", cli.Wrap(fmt.Sprintf("At %s tokens the unchanged model finds %s, the method %s.", length(n), share(recommend.Unchanged, n), share(r.Best, n)), "  "))
			}
		}
		for _, x := range r.Readings {
			if x.Loss != nil {
				w.Line("%s", cli.Wrap(fmt.Sprintf("On the text of %s tokens the method loses %+.4f nats a token (%+.4f to %+.4f).", length(int64(x.Length)), x.Loss.Mean, x.Loss.Low, x.Loss.High), "  "))
			}
		}
		w.Line("")
		w.Line("  %s", r.Command)
	}
}

// suggestShares lists what a method found at each length.
func suggestShares(r *suggestResult, name string) string {
	cells := slices.DeleteFunc(slices.Clone(r.Measured), func(c evaluation.Cell) bool { return c.Variant != name })
	slices.SortFunc(cells, func(a, b evaluation.Cell) int { return a.Length - b.Length })
	text := ""
	for i, c := range cells {
		if i > 0 {
			text += ";"
		}
		text += fmt.Sprintf(" at %s %.0f%% of %d (%.0f-%.0f%%)", evaluation.Tokens(c.Length), 100*c.Score, c.Samples, 100*c.Low, 100*c.High)
	}
	return text
}

// suggestEffective says how far the unchanged model reaches.
func suggestEffective(r *suggestResult) string {
	if r.Effective == 0 {
		return fmt.Sprintf("%d questions are too few to tell how far the unchanged model reaches; give more --samples.", r.Measured[0].Samples)
	}
	return fmt.Sprintf("The unchanged model does as well as with short texts up to %s tokens.", evaluation.Tokens(int(r.Effective)))
}
