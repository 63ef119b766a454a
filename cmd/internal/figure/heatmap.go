package figure

import (
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// HeatMap is a table whose cells have colours.
type HeatMap struct {
	Title, XLabel, YLabel string
	X, Y                  []string             // labels of columns and rows; the first row is at the top
	Values                [][]float64          // [row][column]; NaN was not measured
	Low, High             float64              // values with the first and the last colour
	Text                  func(float64) string // what stands in a cell; nil writes nothing
}

// Write draws the heat map as "png" or "svg".
func (h HeatMap) Write(w io.Writer, format string, theme Theme) error {
	p := newPlot(h.Title, h.XLabel, h.YLabel, theme)
	p.X.Tick.Marker, p.Y.Tick.Marker = labels(h.X, false), labels(h.Y, true)
	p.X.LineStyle.Width, p.Y.LineStyle.Width = 0, 0
	p.X.Tick.LineStyle.Width, p.Y.Tick.LineStyle.Width = 0, 0
	p.Add(cells{h, theme})
	height := vg.Length(64+34*len(h.Y)) * 0.9
	if letters := longest(h.X); letters*len(h.X) > 60 { // they do not fit beside each other
		p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = math.Pi/4, draw.XRight, draw.YTop
		height += vg.Length(4 * letters)
	}
	return write(p, nil, w, fullWidth, height, format)
}

// longest is how many letters the longest name has.
func longest(names []string) (letters int) {
	for _, name := range names {
		letters = max(letters, len([]rune(name)))
	}
	return letters
}

// labels are ticks in the middle of cells.
func labels(names []string, down bool) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for i, name := range names {
		at := i
		if down {
			at = len(names) - 1 - i
		}
		ticks = append(ticks, plot.Tick{Value: float64(at), Label: name})
	}
	return ticks
}

// cells draws the cells of a heat map.
type cells struct {
	HeatMap
	theme Theme
}

func (c cells) DataRange() (xmin, xmax, ymin, ymax float64) {
	return -0.5, float64(len(c.X)) - 0.5, -0.5, float64(len(c.Y)) - 0.5
}

func (c cells) Plot(canvas draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&canvas)
	const gap = vg.Length(1)
	for row, values := range c.Values {
		for column, v := range values {
			bottom := float64(len(c.Y) - 1 - row)
			area := vg.Rectangle{
				Min: vg.Point{X: x(float64(column)-0.5) + gap, Y: y(bottom-0.5) + gap},
				Max: vg.Point{X: x(float64(column)+0.5) - gap, Y: y(bottom+0.5) - gap},
			}
			fill := c.theme.faint()
			if !math.IsNaN(v) {
				fill = Scale((v - c.Low) / (c.High - c.Low))
			}
			canvas.SetColor(fill)
			canvas.Fill(area.Path())
			if c.Text == nil || math.IsNaN(v) {
				continue
			}
			style := p.Y.Tick.Label
			style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
			style.Color = contrast(fill)
			canvas.FillText(style, vg.Point{X: (area.Min.X + area.Max.X) / 2, Y: (area.Min.Y + area.Max.Y) / 2}, c.Text(v))
		}
	}
}

// viridis are nine steps of matplotlib's default colours, in which brightness grows evenly.
var viridis = [...]color.RGBA{
	{68, 1, 84, 255}, {71, 44, 122, 255}, {59, 81, 139, 255}, {44, 113, 142, 255}, {33, 144, 141, 255},
	{39, 173, 129, 255}, {92, 200, 99, 255}, {170, 220, 50, 255}, {253, 231, 37, 255},
}

// Scale is the colour of a share from 0 to 1.
func Scale(share float64) color.Color {
	at := min(max(share, 0), 1) * float64(len(viridis)-1)
	i := min(int(at), len(viridis)-2)
	between := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + (at-float64(i))*(float64(b)-float64(a)))) }
	a, b := viridis[i], viridis[i+1]
	return color.RGBA{between(a.R, b.R), between(a.G, b.G), between(a.B, b.B), 255}
}

// contrast is black or white, whichever can be read on a colour.
func contrast(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	if 0.299*float64(r)+0.587*float64(g)+0.114*float64(b) > 0.5*0xffff {
		return color.Black
	}
	return color.White
}
