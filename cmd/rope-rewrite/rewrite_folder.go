package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/modelfolder"
	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// folderReport is what rope-rewrite FOLDER --json prints.
type folderReport struct {
	Folder   string             `json:"folder"`
	Output   string             `json:"output"` // "" where nothing was written
	Files    []modelfolder.File `json:"files"`
	Left     []string           `json:"left_out"`
	Warnings []string           `json:"warnings"`
	Seconds  float64            `json:"seconds"`
}

// besideFolder is the folder that is written by default: FOLDER.rope, also where FOLDER is "." or ends with "..".
func besideFolder(path string) string {
	path = filepath.Clean(path)
	if base := filepath.Base(path); base == "." || base == ".." {
		if full, err := filepath.Abs(path); err == nil {
			return filepath.Join(path, "..", filepath.Base(full)+".rope")
		}
	}
	return path + ".rope"
}

// folder rewrites the models of a folder into a new one.
func (r *rewriteCommand) folder(ctx context.Context, cmd *cobra.Command, path string, opts rewrite.Options, selections []cli.Selection) error {
	start := time.Now()
	output := r.output
	if output == "" {
		output = besideFolder(path)
	}
	if !r.dryRun {
		if err := modelfolder.CheckOutput(path, output, r.force); err != nil {
			return err
		}
	}
	progress := cli.NewProgress(cmd.ErrOrStderr())
	defer progress.Done()
	opts.Progress = progress.Say
	folder, err := modelfolder.Prepare(ctx, path, opts)
	if errors.Is(err, modelfolder.ErrNoModel) {
		return cli.Exit(cli.ExitNoAttention, fmt.Errorf("%s: %w; nothing written", path, err))
	}
	if err != nil {
		return err
	}
	defer folder.Close()
	report := folderReport{Folder: path, Left: slices.Concat([]string{}, folder.Left), Warnings: slices.Concat([]string{}, folder.Warnings)}
	for _, f := range folder.Files {
		if f.Report == nil {
			continue
		}
		if err := cli.CheckLayers(selections, len(f.Report.Sites)); err != nil {
			return err
		}
		if f.Report.Replaced() > 0 && !r.dryRun {
			if err := checkCacheCost(ctx, filepath.Join(path, f.Path), opts, f.Report); err != nil {
				return err
			}
		}
		for _, w := range f.Report.Warnings {
			report.Warnings = append(report.Warnings, f.Path+": "+w)
		}
	}
	progress.Done()
	if !r.JSON { // before anything is written
		cli.Warn(cmd, report.Warnings)
	}
	if !r.dryRun && !folder.Unverified() {
		if err := r.writeFolder(ctx, cmd, folder, output); err != nil {
			return err
		}
		report.Output = output
	}
	report.Files, report.Seconds = folder.Files, time.Since(start).Seconds()
	if err := r.Show(cmd, &report, func(w *cli.Writer) { r.folderTable(w, &report) }); err != nil {
		return err
	}
	switch unproven := report.unproven(); {
	case folder.Unverified() && unproven:
		return cli.Exit(cli.ExitPartial, cli.ErrReported)
	case folder.Unverified():
		return cli.Exit(cli.ExitLimited, cli.ErrReported)
	}
	return nil
}

func (r *rewriteCommand) writeFolder(ctx context.Context, cmd *cobra.Command, folder *modelfolder.Folder, output string) error {
	progress := cli.NewProgress(cmd.ErrOrStderr())
	defer progress.Done()
	return folder.Write(ctx, output, modelfolder.WriteOptions{Force: r.force, Link: r.weights.Link, Progress: progress.Say})
}

// unproven reports whether a model has a layer that could not be rewritten.
func (r *folderReport) unproven() bool {
	return slices.ContainsFunc(r.Files, func(f modelfolder.File) bool { return f.What == modelfolder.Unverified && f.Report.Unproven() > 0 })
}

// folderTable says what becomes of each file.
func (r *rewriteCommand) folderTable(w *cli.Writer, report *folderReport) {
	const most = 32
	column := 0
	for _, f := range report.Files {
		column = max(column, min(len(f.Path), most))
	}
	indent := strings.Repeat(" ", column+2)
	var files []onnx.PlacedFile
	var edits []string
	for _, f := range report.Files {
		for i, text := range r.became(f) {
			name := f.Path
			if i > 0 {
				name = ""
			}
			if len(name) > column {
				w.Line("%s", name)
				name = ""
			}
			w.Line("%s", cli.Wrap(fmt.Sprintf("%-*s  %s", column, name, text), indent))
		}
		switch f.What {
		case modelfolder.Linked, modelfolder.Cloned, modelfolder.Copied:
			files = append(files, onnx.PlacedFile{Path: f.Path, How: onnx.Placement(f.What), Bytes: f.Size})
		}
		if f.Report != nil && edits == nil {
			edits = f.Report.Edits
		}
	}
	if len(report.Left) > 0 {
		w.Line("%s", cli.Wrap("Left out: "+strings.Join(report.Left, ", ")+".", "  "))
	}
	if len(edits) > 0 {
		w.Line("%s", cli.Wrap("Methods: "+strings.Join(edits, ", ")+".", "  "))
	}
	switch {
	case report.Output != "":
		w.Line("%s", cli.Wrap(fmt.Sprintf("Wrote %s in %.1f s.", report.Output, report.Seconds), "  "))
		cli.Placed(w, files)
	case r.dryRun:
		w.Line("Dry run: nothing written.")
	case !report.unproven():
		w.Line("%s", cli.Wrap("Nothing written: --require-any-length asks for layers that are known for any number of tokens.", "  "))
	default:
		w.Line("%s", cli.Wrap("Nothing written: some layers are not verified; --allow-partial writes anyway.", "  "))
	}
}

// became says what becomes of a file, in a line or several.
func (r *rewriteCommand) became(f modelfolder.File) (lines []string) {
	switch f.What {
	case modelfolder.Rewritten, modelfolder.Unverified:
		verified, reason := 0, ""
		for _, s := range f.Report.Sites {
			if s.Proof != nil && s.Status == rewrite.Rewritten {
				verified++
			} else if reason == "" {
				reason = fmt.Sprintf("; layer %d unchanged: %s", s.Layer, s.Reason)
			}
		}
		return []string{fmt.Sprintf("%s, %d of %d attention layers verified%v%s", f.What, verified, len(f.Report.Sites), f.Report.Reach(), reason)}
	case modelfolder.Configured:
		if len(f.Changes) == 0 {
			return []string{"restored to what it was before the earlier rewrite"}
		}
		for _, c := range f.Changes {
			lines = append(lines, brief(c))
			if base := c.Base(); base != "" {
				lines = append(lines, base+", as in the graph or the method")
			}
		}
		return lines
	case modelfolder.Along:
		return []string{"unchanged"}
	case modelfolder.Added:
		if f.Size > 0 {
			return []string{"added, the op library"}
		}
		return []string{"added, what was done"}
	}
	return []string{string(f.What)}
}

// brief is a change without what is too long for a line.
func brief(c modelconfig.Change) string {
	const most = 2 * cli.Width // dictionaries of LongRoPE have a number for each pair of channels
	if text := []rune(c.String()); len(text) > most {
		return string(text[:most]) + "…"
	}
	return c.String()
}
