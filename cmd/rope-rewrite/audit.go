package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/audit"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/internal/modelfiles"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// auditCommand is rope-rewrite audit.
type auditCommand struct {
	*cli.Common
	config string
	repair bool
	output string
	target string
	force  bool
	limits cli.Limits
}

func newAudit(c *cli.Common) *cobra.Command {
	a := &auditCommand{Common: c}
	command := &cobra.Command{
		Use:   "audit MODEL.onnx|FOLDER [--repair -o OUT.onnx]",
		Short: "Compare what the model computes with what config.json claims",
		Long: `Compares what each attention layer computes with what its configuration claims.
The configuration is config.json and genai_config.json, beside the model or in
the folder above. Compared are base and scaling of the
frequencies, rotated channels, windows, positions, softcap, sinks and heads.
--repair writes the model that the configuration describes.

Exit code 0 when nothing differs, 5 when something differs, 3 when a claim of
an attention layer could not be measured, 4 when there is no rotary attention.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage("expected one model or folder, got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd, args[0]) },
	}
	a.Prints(command, audit.Report{}, cli.OfFolder[*audit.Report]{})
	f := command.Flags()
	f.SortFlags = false
	f.StringVar(&a.config, "config", "", "read `FILE` instead of the config.json beside the model or in the folder above")
	f.BoolVar(&a.repair, "repair", false, "write the model that the configuration describes")
	f.StringVarP(&a.output, "output", "o", "", "write the repaired model to `OUT.onnx` (default MODEL.rope.onnx beside the input)")
	f.StringVar(&a.target, "target", "", "write repaired layers as `NAME`: ops, onnx or contrib, as for a rewrite")
	f.BoolVar(&a.force, "force", false, "replace an existing output")
	a.limits.Flags(command)
	cli.Complete(command)
	return command
}

func (a *auditCommand) run(cmd *cobra.Command, path string) error {
	opts, err := a.Options()
	if err != nil {
		return err
	}
	if a.target != "" {
		if err := cli.SetWord(&opts, "target", a.target); err != nil {
			return cli.Usage("--target %w", err)
		}
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !a.repair && (a.output != "" || a.target != "" || a.force):
		return cli.Usage("-o, --target and --force are for the output of --repair; give --repair too")
	case a.repair && info.IsDir():
		return cli.Usage("--repair takes one model, and %s is a folder", path)
	}
	if opts, err = opts.FindLibraries(); err != nil {
		return err
	}
	return a.limits.Within(cmd, &opts, func(ctx context.Context) error {
		if info.IsDir() {
			return a.folder(ctx, cmd, path, audit.Options{Rewrite: opts, Config: a.config})
		}
		return a.model(ctx, cmd, path, audit.Options{Rewrite: opts, Config: a.config})
	})
}

// model audits one model, and repairs it.
func (a *auditCommand) model(ctx context.Context, cmd *cobra.Command, path string, opts audit.Options) error {
	progress := cli.NewProgress(cmd.ErrOrStderr())
	defer progress.Done()
	opts.Rewrite.Progress = progress.Say
	output := a.output
	if output == "" {
		output = rewrite.DefaultOutput(path)
	}
	var report *audit.Report
	var err error
	if a.repair {
		if err := cli.CheckOutput(output, path, a.force); err != nil {
			return err
		}
		report, err = audit.Repair(ctx, path, opts, func(m *onnx.Model) error {
			return cli.Save(m, output, onnx.SaveOptions{Force: a.force}, progress, ctx.Err)
		})
	} else {
		report, err = audit.Run(ctx, path, opts)
	}
	progress.Done()
	if errors.Is(err, rewrite.ErrNoAttention) {
		return cli.Exit(cli.ExitNoAttention, fmt.Errorf("%s: %w", path, err))
	}
	refused := (*audit.RefusedError)(nil)
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	if len(report.Repaired) > 0 {
		report.Output = output
	}
	if err := a.Show(cmd, report, func(w *cli.Writer) { a.text(w, report) }); err != nil {
		return err
	}
	if refused != nil {
		return cli.Exit(cli.ExitDiffers, refused)
	}
	return cli.Reported(audited(report))
}

// folder audits the models in a folder. Those without a configuration or rotary attention are named: an encoder may
// stand beside its decoder.
func (a *auditCommand) folder(ctx context.Context, cmd *cobra.Command, folder string, opts audit.Options) error {
	return cli.Work[*audit.Report]{
		Do: func(ctx context.Context, p modelfiles.Pair, say func(string)) (*audit.Report, error) {
			opts.Rewrite.Progress = say
			return audit.Run(ctx, p.B, opts)
		},
		Text: a.text, Done: "audited", Failed: "could not be audited",
		Code: audited,
		Unable: func(err error) int {
			unclaimed := (*audit.NoConfigError)(nil)
			return cli.FailedUnless(errors.As(err, &unclaimed) || errors.Is(err, rewrite.ErrNoAttention))
		},
		Nothing: cli.Exit(cli.ExitNoAttention, fmt.Errorf("no model in %s has rotary attention and a configuration", folder)),
	}.Folders(ctx, a.Common, cmd, []string{folder}, cli.NewProgress(cmd.ErrOrStderr()))
}

// audited is the exit code of an audit.
func audited(r *audit.Report) int {
	return map[audit.Outcome]int{audit.SomeDiffer: cli.ExitDiffers, audit.SomeUnmeasured: cli.ExitPartial}[r.Outcome()]
}

// text prints a report as a table.
func (a *auditCommand) text(w *cli.Writer, r *audit.Report) {
	w.Text("  ", "%s, claims from %s:", r.Model, strings.Join(r.Configs, " and "))
	var rows []cli.Row
	said := map[string]bool{} // reasons, which may be as long as the rest and the same for all that is claimed
	for _, l := range r.Lines {
		row := cli.Row{Difference: l.Difference, Verdict: string(l.Verdict)}
		if l.Scope != "" {
			row.Below = append(row.Below, "in "+short.Name(l.Scope))
		}
		if l.Verdict == audit.Differs {
			row.Below = append(row.Below, "claimed by "+l.From)
		}
		switch {
		case said[l.Why]:
			row.Below = append(row.Below, "as above")
		case l.Why != "":
			row.Below, said[l.Why] = append(row.Below, l.Why), true
		}
		rows = append(rows, row)
	}
	cli.Differences(w, "layers", "claimed", "graph", rows)
	var parts []string
	for _, v := range []audit.Verdict{audit.Agrees, audit.Differs, audit.NotClaimed, audit.NotMeasured} {
		if n := r.Count(v); n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", v, n))
		}
	}
	w.Text("  ", "%s", strings.Join(parts, ", ")+".")
	switch {
	case r.Output != "":
		w.Text("  ", "%s", "Repaired by "+strings.Join(r.Repaired, ", ")+".")
		w.Text("  ", "%s", "Wrote "+r.Output+", which agrees.")
	case a.repair && r.Count(audit.Differs) == 0:
		w.Line("Nothing differs, so nothing was written.")
	}
}
