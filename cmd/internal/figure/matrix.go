package figure

import (
	"fmt"
	"image"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Matrix is a table of many cells, a pixel or more each, with keys from left to right and queries
// from top to bottom.
type Matrix struct {
	Title, XLabel, YLabel string
	Values                [][]float64 // [row][column], all rows as long; NaN is hidden
	Length                float64     // tokens that rows and columns stand for
	Classes               []string    // names of the values 0, 1, …; nil draws a scale of numbers
}

// Write draws the matrix as "png" or "svg".
func (m Matrix) Write(w io.Writer, format string, theme Theme) error {
	if len(m.Values) == 0 || len(m.Values[0]) == 0 {
		return fmt.Errorf("draw a matrix: it has no cells")
	}
	p := newPlot(m.Title, m.XLabel, m.YLabel, theme)
	low, high := math.Inf(1), math.Inf(-1)
	for _, row := range m.Values {
		for _, v := range row {
			if !math.IsNaN(v) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	colour := func(v float64) color.Color {
		switch {
		case math.IsNaN(v):
			return theme.paper()
		case m.Classes != nil:
			return okabeIto[int(v)%len(okabeIto)]
		}
		return Scale((v - low) / max(high-low, 1e-300))
	}
	rows, columns := len(m.Values), len(m.Values[0])
	// Each cell is several pixels: a reader that draws the picture larger must not blur them.
	grow := max(1, 512/max(rows, columns))
	picture := image.NewRGBA(image.Rect(0, 0, columns*grow, rows*grow))
	for y := range rows * grow {
		for x := range columns * grow {
			picture.Set(x, y, colour(m.Values[y/grow][x/grow]))
		}
	}
	p.Add(plotter.NewImage(picture, 0, 0, m.Length, m.Length))
	p.X.Tick.Marker, p.Y.Tick.Marker = tokenTicks{}, downwards{m.Length}
	legend := newLegend(p)
	if m.Classes != nil {
		for i, name := range m.Classes {
			legend.Add(name, swatch{okabeIto[i%len(okabeIto)]})
		}
	} else {
		ticks := tokenTicks{}.Ticks(low, high)
		for i := range ticks {
			t := ticks[len(ticks)-1-i]
			legend.Add(t.Label, swatch{colour(t.Value)})
		}
	}
	return write(p, &legend, w, fullWidth, fullWidth*0.78, format)
}

// downwards are ticks of an axis that counts from the top.
type downwards struct{ length float64 }

func (d downwards) Ticks(low, high float64) []plot.Tick {
	ticks := tokenTicks{}.Ticks(low, high)
	for i := range ticks {
		ticks[i].Value = d.length - ticks[i].Value
	}
	return ticks
}

// swatch is a square of one colour in a legend.
type swatch struct{ color.Color }

func (s swatch) Thumbnail(c *draw.Canvas) {
	c.SetColor(s.Color)
	c.Fill(vg.Rectangle{Min: c.Min, Max: c.Max}.Path())
}

// newLegend is an empty legend in a plot's style.
func newLegend(p *plot.Plot) plot.Legend {
	legend := plot.NewLegend()
	legend.TextStyle = p.X.Tick.Label
	legend.TextStyle.XAlign, legend.TextStyle.YAlign = draw.XLeft, draw.YBottom
	legend.Padding = vg.Points(3)
	return legend
}
