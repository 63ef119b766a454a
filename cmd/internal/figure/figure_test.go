package figure_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/figure"
)

func heatMap() figure.HeatMap {
	return figure.HeatMap{
		Title: "passkey, none", XLabel: "tokens", YLabel: "depth", X: []string{"2K", "4K", "8K"}, Y: []string{"10%", "90%"},
		Values: [][]float64{{1, 0.5, 0}, {1, math.NaN(), 0.25}}, High: 1, Text: func(v float64) string { return fmt.Sprintf("%.0f%%", 100*v) },
	}
}

func lines() figure.Lines {
	return figure.Lines{
		Title: "perplexity", XLabel: "tokens", YLabel: "perplexity", TokensX: true, LogY: true,
		Series: []figure.Series{{Name: "none", X: []float64{128, 4096, 16384}, Y: []float64{20, 15, 900}}, {Name: "yarn", X: []float64{128, 16384}, Y: []float64{21, 14}}},
		Marks:  []figure.Mark{{Name: "trained length", X: 8192}},
	}
}

// Pictures are whole, the same every time, and others on a dark page.
func TestWrite(t *testing.T) {
	for name, write := range map[string]func(io.Writer, string, figure.Theme) error{"heat map": heatMap().Write, "lines": lines().Write} {
		seen := map[string]bool{}
		for _, theme := range []figure.Theme{figure.Light, figure.Dark} {
			for _, format := range []string{"png", "svg"} {
				var first, second bytes.Buffer
				if err := errors.Join(write(&first, format, theme), write(&second, format, theme)); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if !bytes.Equal(first.Bytes(), second.Bytes()) {
					t.Errorf("%s: two pictures of the same differ", name)
				}
				if seen[first.String()] {
					t.Errorf("%s: light and dark are the same", name)
				}
				seen[first.String()] = true
				if format == "svg" {
					if err := xml.Unmarshal(first.Bytes(), new(struct{})); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					continue
				}
				m, err := png.Decode(&first)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if w := m.Bounds().Dx(); w < 700 || w > 1000 {
					t.Errorf("%s: it is %d pixels wide", name, w)
				}
			}
		}
	}
	if err := heatMap().Write(io.Discard, "bmp", figure.Light); err == nil {
		t.Error("a format that is not known was written")
	}
}

// Axes have a few round numbers, and 0 without a sign.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		labels    []string
	}{
		{-0.08, 0.97, []string{">0<", ">0.2<", ">0.4<", ">0.6<", ">0.8<"}},
		{-127.5, 0, []string{">-120<", ">-60<", ">0<"}},
		{0, 31, []string{">0<", ">10<", ">30<"}},
	} {
		var b bytes.Buffer
		l := figure.Lines{Series: []figure.Series{{X: []float64{1, 900}, Y: []float64{c.low, c.high}}}, LogX: true, XLabel: "tokens apart"}
		if err := l.Write(&b, "svg", figure.Light); err != nil {
			t.Fatal(err)
		}
		for _, label := range append(c.labels, ">tokens apart<") {
			if !bytes.Contains(b.Bytes(), []byte(label)) {
				t.Errorf("%g to %g: there is no %q", c.low, c.high, label)
			}
		}
		if bytes.Contains(b.Bytes(), []byte(">-0<")) {
			t.Errorf("%g to %g: there is a -0", c.low, c.high)
		}
	}
}

func TestFormat(t *testing.T) {
	for path, want := range map[string]string{"a.png": "png", "b/c.SVG": "svg", "a.gif": "", "png": ""} {
		if got, err := figure.Format(path); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
}

// The picture of a heat map as SVG begins like any.
func Example() {
	var b bytes.Buffer
	if err := heatMap().Write(&b, "svg", figure.Light); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(bytes.HasPrefix(b.Bytes(), []byte("<?xml")), figure.Tokens(12288))
	// Output: true 12K
}
