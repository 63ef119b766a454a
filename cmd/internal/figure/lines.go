package figure

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Series is one line.
type Series struct {
	Name string
	X, Y []float64
}

// Mark is a line with a name across the picture, such as the trained length: vertical at X, or
// horizontal at Y where X is 0.
type Mark struct {
	Name string
	X, Y float64
}

// Lines are several series over the same axes.
type Lines struct {
	Title, XLabel, YLabel string
	Series                []Series
	Marks                 []Mark
	LogX, LogY            bool
	TokensX, TokensY      bool // the axis counts tokens: 8192 is 8K
}

// okabeIto are colours that the colour-blind can tell apart (Okabe and Ito, "Color Universal
// Design", 2008), without the one that is faint on white.
var okabeIto = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{230, 159, 0, 255}, color.RGBA{0, 158, 115, 255}, color.RGBA{204, 121, 167, 255},
	color.RGBA{86, 180, 233, 255}, color.RGBA{213, 94, 0, 255},
}

// Write draws the lines as "png" or "svg".
func (l Lines) Write(w io.Writer, format string, theme Theme) error {
	p := newPlot(l.Title, l.XLabel, l.YLabel, theme)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = theme.faint(), theme.faint()
	p.Add(grid)
	legend := newLegend(p)
	for i, s := range l.Series {
		line, err := plotter.NewLine(points(s))
		if err != nil {
			return fmt.Errorf("draw %s: %w", s.Name, err)
		}
		line.Color, line.Width = okabeIto[i%len(okabeIto)], vg.Points(1.75)
		if i >= len(okabeIto) {
			line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		}
		p.Add(line)
		legend.Add(s.Name, line)
	}
	for _, m := range l.Marks {
		p.Add(mark{m, theme})
	}
	axis(&p.X, l.LogX, l.TokensX)
	axis(&p.Y, l.LogY, l.TokensY)
	shown := &legend
	if len(l.Series) < 2 {
		shown = nil // the title says it
	}
	return write(p, shown, w, fullWidth, fullWidth*0.56, format)
}

func points(s Series) (xy plotter.XYs) {
	for i := range s.X {
		xy = append(xy, plotter.XY{X: s.X[i], Y: s.Y[i]})
	}
	return xy
}

// axis makes an axis logarithmic, or one that counts tokens.
func axis(a *plot.Axis, log, tokens bool) {
	a.Tick.Marker = roundTicks{}
	if log {
		a.Scale = plot.LogScale{}
		a.Tick.Marker = logTicks{}
	}
	if tokens {
		a.Tick.Marker = tokenTicks{log}
	}
}

// roundTicks are multiples of 1, 2 or 5 times a power of ten.
type roundTicks struct{}

func (roundTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	power := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	step := power
	for _, digit := range []float64{2, 5, 10} {
		if (high-low)/step > 7 {
			step = digit * power
		}
	}
	for i := math.Ceil(low / step); i*step <= high; i++ {
		x := i*step + 0 // -0 + 0 is 0
		ticks = append(ticks, plot.Tick{Value: x, Label: fmt.Sprintf("%.6g", x)})
	}
	return ticks
}

// logTicks are round numbers, closer to one another where the axis is short.
type logTicks struct{}

func (logTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	for _, digits := range [][]float64{{1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 7}, {1, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8, 2, 2.2, 2.4, 2.6, 2.8, 3, 3.3, 3.6, 4, 4.5, 5, 5.5, 6, 6.5, 7, 8, 9}} {
		ticks = nil
		for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high; power *= 10 {
			for _, digit := range digits {
				if x := digit * power; x >= low && x <= high {
					ticks = append(ticks, plot.Tick{Value: x, Label: fmt.Sprintf("%.3g", x)})
				}
			}
		}
		if len(ticks) >= 4 {
			break
		}
	}
	return ticks
}

// tokenTicks are powers of two, or round multiples of 1,024.
type tokenTicks struct{ log bool }

func (t tokenTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	if t.log {
		step := max(math.Ceil(math.Log2(high/low)/8), 1)
		for e := math.Ceil(math.Log2(low)); e <= math.Log2(high); e += step {
			ticks = append(ticks, plot.Tick{Value: math.Exp2(e), Label: Tokens(math.Exp2(e))})
		}
		return ticks
	}
	step := math.Exp2(math.Ceil(math.Log2(max(high-low, 8) / 8)))
	for x := math.Ceil(low/step) * step; x <= high; x += step {
		ticks = append(ticks, plot.Tick{Value: x, Label: Tokens(x)})
	}
	return ticks
}

// Tokens writes a number of tokens as the field does: 8192 is 8K.
func Tokens(n float64) string {
	switch {
	case n >= 1<<20 && math.Mod(n, 1<<20) == 0:
		return fmt.Sprintf("%.0fM", n/(1<<20))
	case n >= 1024 && math.Mod(n, 512) == 0:
		return fmt.Sprintf("%gK", n/1024)
	}
	return fmt.Sprintf("%g", n)
}

// mark draws a line with its name.
type mark struct {
	Mark
	theme Theme
}

func (m mark) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := draw.LineStyle{Color: m.theme.ink(), Width: vg.Points(1), Dashes: []vg.Length{vg.Points(4), vg.Points(3)}}
	text := p.X.Tick.Label
	text.YAlign = draw.YBottom
	switch {
	case m.X > 0 && m.X >= p.X.Min && m.X <= p.X.Max:
		c.StrokeLine2(style, x(m.X), c.Min.Y, x(m.X), c.Max.Y)
		text.XAlign = draw.XRight
		c.FillText(text, vg.Point{X: x(m.X) - vg.Points(4), Y: c.Min.Y + vg.Points(4)}, m.Name)
	case m.X == 0 && m.Y >= p.Y.Min && m.Y <= p.Y.Max:
		c.StrokeLine2(style, c.Min.X, y(m.Y), c.Max.X, y(m.Y))
		text.XAlign = draw.XLeft
		c.FillText(text, vg.Point{X: c.Min.X + vg.Points(4), Y: y(m.Y) + vg.Points(2)}, m.Name)
	}
}
