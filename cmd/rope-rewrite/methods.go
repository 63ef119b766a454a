package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

func newMethods(c *cli.Common) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "methods [NAME]",
		Short: "List the methods, or describe one with its keys",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usage("one method at a time, got %d: %q", len(args), short.Names(args))
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) (list []string, _ cobra.ShellCompDirective) {
			if len(args) == 0 {
				for m := range rope.Methods() {
					list = append(list, m.Name)
				}
			}
			return list, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var list []rope.Method
			for m := range rope.Methods() {
				if len(args) == 0 || suggest.Same(m.Name, args[0]) {
					list = append(list, m)
				}
			}
			if len(list) == 0 {
				nearest := ""
				if name := rope.Suggest(args[0]); name != "" {
					nearest = fmt.Sprintf(" (did you mean %q?)", short.Name(name))
				}
				return cli.Usage("there is no method %q%s; rope-rewrite methods lists all", short.Name(args[0]), nearest)
			}
			return c.Show(cmd, describeMethods(list), func(w *cli.Writer) {
				if len(args) == 0 {
					listMethods(w, list)
					return
				}
				for _, m := range list {
					showMethod(w, m)
				}
			})
		},
	}
	c.Prints(cmd, []describedMethod{})
	return cmd
}

// listMethods prints one line for each method.
func listMethods(w *cli.Writer, list []rope.Method) {
	axis := ""
	for _, m := range list {
		if name := m.Axis.String(); name != axis {
			if axis != "" {
				w.Line("")
			}
			axis = name
			w.Line("--%s", axis)
		}
		first, _, _ := strings.Cut(m.Doc, ". ")
		w.Line("%s", cli.Wrap(fmt.Sprintf("  %-20s %s", m.Name, strings.TrimSuffix(first, ".")), strings.Repeat(" ", 23)))
	}
	w.Line("")
	w.Line("rope-rewrite methods NAME describes one; docs/methods.md describes all.")
}

func showMethod(w *cli.Writer, m rope.Method) {
	w.Line("--%v %s", m.Axis, m.Name)
	w.Line("%s", cli.Wrap(m.Doc, ""))
	w.Line("")
	w.Line("%s", cli.Wrap("Formula: "+m.Formula, "  "))
	w.Line("%s", cli.Wrap("Source:  "+m.Source, "  "))
	w.Line("%s", cli.Wrap("Use:     "+strings.Join(m.Labels(), "; "), "  "))
	if m.Measured != "" {
		w.Line("%s", cli.Wrap("Measured: "+m.Measured, "  "))
	}
	if len(m.Params) > 0 {
		w.Line("\nKeys:")
	}
	for _, p := range m.Params {
		text := fmt.Sprintf("  %s=  %s: %s", p.Name, p.Values(), p.Doc)
		if p.Default.Kind() != rope.Absent {
			text += fmt.Sprintf(" (default %v)", p.Default)
		}
		w.Line("%s", cli.Wrap(text, "      "))
	}
}

// describedMethod is a method as --json prints it.
type describedMethod struct {
	Axis     string           `json:"axis"`
	Name     string           `json:"name"`
	Doc      string           `json:"doc"`
	Formula  string           `json:"formula"`
	Source   string           `json:"source"`
	Labels   []string         `json:"labels"`
	Measured string           `json:"measured"`  // "" where nothing was
	HF       bool             `json:"rope_type"` // the name is a rope_type of Hugging Face's too
	Keys     []describedParam `json:"keys"`
}

type describedParam struct {
	Name    string `json:"name"`
	Values  string `json:"values"`
	Default string `json:"default"` // "" without one
	Doc     string `json:"doc"`
}

func describeMethods(list []rope.Method) []describedMethod {
	var out []describedMethod
	for _, m := range list {
		d := describedMethod{Axis: m.Axis.String(), Name: m.Name, Doc: m.Doc, Formula: m.Formula, Source: m.Source, Labels: m.Labels(), Measured: m.Measured, HF: m.HF, Keys: []describedParam{}}
		for _, p := range m.Params {
			d.Keys = append(d.Keys, describedParam{Name: p.Name, Values: p.Values(), Default: p.Default.String(), Doc: p.Doc})
		}
		out = append(out, d)
	}
	return out
}
