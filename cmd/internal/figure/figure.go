package figure

import (
	"fmt"
	"image/color"
	"io"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Theme is the page that a picture stands on.
type Theme int

const (
	Light Theme = iota
	Dark
)

// String is the theme's name.
func (t Theme) String() string {
	if t == Dark {
		return "dark"
	}
	return "light"
}

// paper and ink are those of the pages that most readers see: GitHub's.
func (t Theme) paper() color.Color {
	if t == Dark {
		return color.RGBA{13, 17, 23, 255}
	}
	return color.White
}

func (t Theme) ink() color.Color {
	if t == Dark {
		return color.RGBA{230, 237, 243, 255}
	}
	return color.RGBA{31, 35, 40, 255}
}

// faint is the colour of grids and of what was not measured.
func (t Theme) faint() color.Color {
	if t == Dark {
		return color.RGBA{61, 68, 77, 255}
	}
	return color.RGBA{209, 217, 224, 255}
}

// Format is the format of a picture by its file's name.
func Format(path string) (string, error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".png", ".svg":
		return ext[1:], nil
	}
	return "", fmt.Errorf("%s: pictures are .png or .svg files; name one of these", path)
}

// text sizes, for a picture of 700 pixels, which have 3/4 of a point.
const (
	titleSize = vg.Length(13)
	textSize  = vg.Length(11)
	fullWidth = vg.Length(700 * 0.75)
)

// newPlot is an empty plot in a theme.
func newPlot(title, xLabel, yLabel string, theme Theme) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = theme.paper()
	p.Title.Text = title
	p.Title.TextStyle.Font.Size = titleSize
	p.Title.TextStyle.Color = theme.ink()
	p.Title.Padding = vg.Points(8)
	p.X.Label.Text, p.Y.Label.Text = xLabel, yLabel
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color = theme.ink()
		axis.Label.TextStyle.Font.Size = textSize
		axis.Label.TextStyle.Color = theme.ink()
		axis.Tick.Label.Font.Size = textSize
		axis.Tick.Label.Color = theme.ink()
		axis.Tick.LineStyle.Color = theme.ink()
	}
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Font.Variant = "Sans"
	}
	return p
}

// write draws a plot with a margin around it, and its legend to the right of it.
func write(p *plot.Plot, legend *plot.Legend, w io.Writer, width, height vg.Length, format string) error {
	c, err := draw.NewFormattedCanvas(width, height, format)
	if err != nil {
		return fmt.Errorf("draw a picture: %w", err)
	}
	canvas := draw.New(c)
	canvas.SetColor(p.BackgroundColor)
	canvas.Fill(canvas.Rectangle.Path())
	const margin = vg.Length(8)
	area := draw.Crop(canvas, margin, -2*margin, margin, -margin)
	if legend != nil {
		legend.Top = true
		size := legend.Rectangle(area).Size()
		legend.Draw(draw.Crop(area, 0, 0, 0, -3*margin))
		area = draw.Crop(area, 0, -size.X-2*margin, 0, 0)
	}
	if _, log := p.X.Scale.(plot.LogScale); log {
		area = labelled(p, area)
	}
	p.Draw(area)
	_, err = c.WriteTo(w)
	return err
}

// labelled writes the label of a logarithmic axis under the place of a plot, and returns that place:
// Gonum looks for the label's middle at the mean of the axis's ends, and keeps room for it at the right.
func labelled(p *plot.Plot, area draw.Canvas) draw.Canvas {
	label, style := p.X.Label.Text, p.X.Label.TextStyle
	p.X.Label.Text = ""
	style.XAlign, style.YAlign = draw.XCenter, draw.YBottom
	rest := draw.Crop(area, 0, 0, style.Height(label)+p.X.Label.Padding+style.FontExtents().Descent, 0)
	numbers := p.DataCanvas(rest)
	area.FillText(style, vg.Point{X: numbers.Center().X, Y: area.Min.Y}, label)
	return rest
}
