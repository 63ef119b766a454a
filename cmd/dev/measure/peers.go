package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/figure"
)

// peers is what scripts/peers/turns.py writes.
type peers struct {
	CPU      string            `json:"cpu"`
	Cores    int               `json:"cores"`
	Versions map[string]string `json:"versions"`
	Tokens   int               `json:"tokens"`
	Runs     []peerRun         `json:"runs"`
}

// peerRun is one process: a prompt, then single tokens. Times are in seconds.
type peerRun struct {
	contestant
	Length     int     `json:"length"`
	Threads    int     `json:"threads"`
	Load       float64 `json:"load"`
	Prefill    float64 `json:"prefill"`
	PrefillCPU float64 `json:"prefill_cpu"`
	Token      float64 `json:"token"`
	TokenCPU   float64 `json:"token_cpu"`
}

// contestant is a program with one of its models.
type contestant struct {
	Program string `json:"program"`
	Weights string `json:"weights"`
	Cache   string `json:"cache"`
}

func (c contestant) String() string {
	return fmt.Sprintf("%s, weights %s, cache %s", c.Program, c.Weights, c.Cache)
}

const ourProgram = "rope-rewrite"

func (c contestant) ours() bool { return c.Program == ourProgram }

// bits of a weight, without the scales of its block.
func (c contestant) bits() int {
	return map[string]int{"int4": 4, "q4_0": 4, "q8_0": 8, "f16": 16, "f32": 32, "float32": 32}[c.Weights]
}

// rate is in tokens a second, the middle one of all rounds.
type rate struct{ prefill, decode float64 }

type place struct {
	contestant
	length, threads int
}

func peersCommand() *cobra.Command {
	var drawing string
	command := &cobra.Command{
		Use:   "peers PEERS.json",
		Short: "Print what make bench-peers measured beside other programs, and draw it",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return printPeers(command.OutOrStdout(), args[0], drawing)
		},
	}
	command.Flags().StringVar(&drawing, "plot", "", "picture (.svg or .png) to draw")
	return command
}

func printPeers(out io.Writer, file, drawing string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	p := peers{}
	if err := json.Unmarshal(text, &p); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(p.Runs) == 0 {
		return fmt.Errorf("%s holds no runs", file)
	}
	w := &strings.Builder{}
	p.head(w)
	for _, threads := range p.threads() {
		p.table(w, threads)
	}
	p.behind(w)
	if _, err := io.WriteString(out, w.String()); err != nil || drawing == "" {
		return err
	}
	return p.draw(drawing)
}

func (p peers) head(w io.Writer) {
	var versions []string
	for name, version := range p.Versions {
		versions = append(versions, name+" "+version)
	}
	slices.Sort(versions)
	low, high := p.Runs[0].Load, p.Runs[0].Load
	for _, r := range p.Runs {
		low, high = min(low, r.Load), max(high, r.Load)
	}
	fmt.Fprintf(w, "%s, %d cores; %s. %d tokens after each prompt; the machine's load was %.1f to %.1f.\n", p.CPU, p.Cores, strings.Join(versions, ", "), p.Tokens, low, high)
}

func (p peers) threads() (all []int) { return p.distinct(func(r peerRun) int { return r.Threads }) }
func (p peers) lengths() (all []int) { return p.distinct(func(r peerRun) int { return r.Length }) }
func (p peers) distinct(of func(peerRun) int) (all []int) {
	for _, r := range p.Runs {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// contestants come in the order of the first round.
func (p peers) contestants() (all []contestant) {
	for _, r := range p.Runs {
		if !slices.Contains(all, r.contestant) {
			all = append(all, r.contestant)
		}
	}
	return all
}

// rates are those of one thread by the processor's time, which other work on the machine changes less, and
// of several by the clock.
func (p peers) rates() map[place]rate {
	times := map[place][2][]float64{}
	for _, r := range p.Runs {
		at := place{r.contestant, r.Length, r.Threads}
		t := times[at]
		if r.Threads == 1 {
			r.Prefill, r.Token = r.PrefillCPU, r.TokenCPU
		}
		t[0], t[1] = append(t[0], r.Prefill), append(t[1], r.Token)
		times[at] = t
	}
	rates := map[place]rate{}
	for at, t := range times {
		rates[at] = rate{float64(at.length) / median(t[0]), 1 / median(t[1])}
	}
	return rates
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// table has tokens a second in Markdown, the fastest of each column in bold.
func (p peers) table(w io.Writer, threads int) {
	rates, lengths := p.rates(), p.lengths()
	fmt.Fprintf(w, "\n| %s, tokens a second | weights | cache |", threadsText(threads))
	for _, kind := range []string{"prompt of", "after"} {
		for _, n := range lengths {
			fmt.Fprintf(w, " %s %s |", kind, grouped(n))
		}
	}
	fmt.Fprintf(w, "\n|---|---|---|%s\n", strings.Repeat("---|", 2*len(lengths)))
	best := map[int]rate{}
	for at, r := range rates {
		if at.threads == threads {
			best[at.length] = rate{max(best[at.length].prefill, r.prefill), max(best[at.length].decode, r.decode)}
		}
	}
	for _, c := range p.contestants() {
		fmt.Fprintf(w, "| %s | %s | %s |", c.Program, c.Weights, c.Cache)
		for _, decode := range []bool{false, true} {
			for _, n := range lengths {
				r, ok := rates[place{c, n, threads}]
				value, top, form := r.prefill, best[n].prefill, "%.0f"
				if decode {
					value, top, form = r.decode, best[n].decode, "%.1f"
				}
				cell := fmt.Sprintf(form, value)
				switch {
				case !ok:
					cell = "not run"
				case value == top:
					cell = "**" + cell + "**"
				}
				fmt.Fprintf(w, " %s |", cell)
			}
		}
		fmt.Fprintln(w)
	}
}

// behind says where each of our models stands: in a prompt beside the fastest other program of all, in single
// tokens beside llama.cpp with weights of as many bits.
func (p peers) behind(w io.Writer) {
	rates := p.rates()
	fmt.Fprint(w, "\n| our model | threads | length | prompt, / the fastest other | a token, / llama.cpp with as many bits |\n|---|---|---|---|---|\n")
	for _, c := range p.contestants() {
		if !c.ours() {
			continue
		}
		for _, threads := range p.threads() {
			for _, n := range p.lengths() {
				own, ok := rates[place{c, n, threads}]
				if !ok {
					continue
				}
				prefill, decode := "none ran", "none ran"
				fastest := rate{}
				for at, r := range rates {
					if at.length != n || at.threads != threads || at.ours() {
						continue
					}
					if r.prefill > fastest.prefill {
						fastest.prefill = r.prefill
						prefill = fmt.Sprintf("%.2f (%s %s)", own.prefill/r.prefill, at.Program, at.Weights)
					}
					if at.Program == "llama.cpp" && at.bits() == c.bits() && r.decode > fastest.decode {
						fastest.decode = r.decode
						decode = fmt.Sprintf("%.2f (%s)", own.decode/r.decode, at.Weights)
					}
				}
				fmt.Fprintf(w, "| %s, cache %s | %d | %s | %s | %s |\n", c.Weights, c.Cache, threads, grouped(n), prefill, decode)
			}
		}
	}
}

// grouped writes a number below a million with a comma at the thousands.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// draw draws single tokens by the length before them, on all threads.
func (p peers) draw(file string) error {
	format, err := figure.Format(file)
	if err != nil {
		return err
	}
	rates, threads := p.rates(), slices.Max(p.threads())
	lines := figure.Lines{Title: "SmolLM2, single tokens, " + threadsText(threads), XLabel: "tokens before", YLabel: "tokens a second", LogX: true, TokensX: true, LogY: true}
	for _, c := range p.contestants() {
		s := figure.Series{Name: fmt.Sprintf("%s %s, %s", c.Program, c.Weights, c.Cache)}
		for _, n := range p.lengths() {
			if r, ok := rates[place{c, n, threads}]; ok {
				s.X, s.Y = append(s.X, float64(n)), append(s.Y, r.decode)
			}
		}
		if len(s.X) > 0 {
			lines.Series = append(lines.Series, s)
		}
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := lines.Write(out, format, figure.Light); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
