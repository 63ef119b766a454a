package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// measured is what rope_bench writes.
type measured struct {
	CPU         string  `json:"cpu"`
	Target      string  `json:"target"`
	Runtime     string  `json:"onnxruntime"`
	MultiplyAdd float64 `json:"multiply_add_flops"` // per second, of one thread
	BFloat16    float64 `json:"bfloat16_flops"`
	Read        float64 `json:"read_bytes"`
	Rounds      int     `json:"rounds"`
	Rows        []row   `json:"rows"`
}

// row is one way to do a work.
type row struct {
	Work       string  `json:"work"`
	Threads    int     `json:"threads"`
	Contestant string  `json:"contestant"`
	Seconds    float64 `json:"seconds"` // median
	Flops      float64 `json:"flops_per_second"`
	Bytes      float64 `json:"cache_bytes_per_second"`
	Gain       float64 `json:"peer_over_this"`
	Cost       float64 `json:"this_over_ours"`
	Threaded   float64 `json:"gain_of_threads"` // time on the fewest threads / this
}

func tableCommand() *cobra.Command {
	var drawing string
	command := &cobra.Command{
		Use:   "table BENCH.json",
		Short: "Print what rope_bench measured beside ONNX Runtime's GroupQueryAttention, and draw it",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return printTable(command.OutOrStdout(), args[0], drawing)
		},
	}
	command.Flags().StringVar(&drawing, "plot", "", "SVG `FILE` to draw")
	return command
}

func printTable(out io.Writer, file, drawing string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	m := measured{}
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(m.Rows) == 0 {
		return fmt.Errorf("%s holds no rows", file)
	}
	if err := table(out, m); err != nil {
		return err
	}
	if drawing == "" {
		return nil
	}
	return draw(m, drawing)
}

// table prints the rows in Markdown.
func table(out io.Writer, m measured) error {
	w := &strings.Builder{}
	fmt.Fprintf(w, "%s, %s, ONNX Runtime %s. One thread: multiply-add %.1f GF/s", m.CPU, m.Target, m.Runtime, m.MultiplyAdd/1e9)
	if m.BFloat16 > 0 {
		fmt.Fprintf(w, " (bfloat16 %.1f)", m.BFloat16/1e9)
	}
	fmt.Fprintf(w, ", reading %.1f GB/s. Medians of %d rounds.\n\n", m.Read/1e9, m.Rounds)
	fmt.Fprintln(w, "| work | threads | op | ms | GF/s | of the peak | GB/s of K and V | of reading | GroupQueryAttention / this | this / RotaryAttention | gain of threads |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|")
	for _, r := range m.Rows {
		threads := float64(r.Threads)
		fmt.Fprintf(w, "| %s | %d | %s | %.4g | %.1f | %.0f %% | %.2f | %.0f %% | %.2f | %.2f | %.2f |\n", r.Work, r.Threads, r.Contestant,
			1e3*r.Seconds, r.Flops/1e9, 100*r.Flops/(threads*m.MultiplyAdd), r.Bytes/1e9, 100*r.Bytes/m.Read, r.Gain, r.Cost, r.Threaded)
	}
	_, err := io.WriteString(out, w.String())
	return err
}

// draw draws how many times as fast as GroupQueryAttention our op is in each
// work, by threads.
func draw(m measured, file string) error {
	p := plot.New()
	p.Title.Text = "RotaryAttention beside GroupQueryAttention, float32"
	p.Y.Label.Text = "times as fast"
	p.Y.Min = 0
	var works []string
	place := map[string]int{}
	values := map[int]plotter.Values{}
	var threads []int
	for _, r := range m.Rows {
		if r.Contestant != "RotaryAttention" {
			continue
		}
		at, ok := place[r.Work]
		if !ok {
			at = len(works)
			place[r.Work] = at
			works = append(works, strings.ReplaceAll(r.Work, " ", "\n"))
		}
		if values[r.Threads] == nil {
			threads = append(threads, r.Threads)
		}
		for len(values[r.Threads]) <= at {
			values[r.Threads] = append(values[r.Threads], 0)
		}
		values[r.Threads][at] = r.Gain
	}
	const width = vg.Length(18)
	for i, n := range threads {
		bars, err := plotter.NewBarChart(values[n], width)
		if err != nil {
			return err
		}
		bars.Offset = width * vg.Length(2*i-len(threads)+1) / 2
		bars.Color = plotutil.Color(i)
		bars.LineStyle.Width = 0
		p.Add(bars)
		p.Legend.Add(threadsText(n), bars)
	}
	p.Legend.Top = true
	p.Legend.Left = true
	p.Legend.Padding = 2
	same := plotter.NewFunction(func(float64) float64 { return 1 })
	same.Dashes = []vg.Length{vg.Points(4), vg.Points(4)}
	p.Add(same)
	p.NominalX(works...)
	p.X.Min, p.X.Max = -0.5, float64(len(works))-0.5
	p.Y.Max *= 1.1
	return p.Save(vg.Length(len(works))*2.8*vg.Centimeter+3*vg.Centimeter, 11*vg.Centimeter, file)
}

func threadsText(n int) string {
	if n == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", n)
}
