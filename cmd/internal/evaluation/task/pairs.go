package task

import (
	"math"
	"math/rand/v2"
	"strings"
)

// pairs makes the samples of a text of keys and values: a sample asks for one of those that
// stand around the depth, so that all samples of a text share it. Where a text has fewer than
// there are samples, the others get texts of their own.
func pairs(c *Cell) ([]Sample, error) {
	const hexadecimal = "0123456789abcdef"
	draw := func(rng *rand.Rand, n int) (lines []map[string]string) {
		for range n {
			lines = append(lines, map[string]string{"name": word(rng, hexadecimal, 8), "key": word(rng, hexadecimal, 8)})
		}
		return lines
	}
	asked := func(lines []map[string]string, about int) Prompt {
		var text strings.Builder
		for _, line := range lines {
			text.WriteString(filled(c.Form.Needle, line))
		}
		return c.Form.prompt(text.String(), map[string]string{"name": lines[about]["name"]})
	}
	n, err := c.fit(0, func(n int) Prompt { return asked(draw(c.random(0, 0), max(n, 1)), 0) })
	if err != nil {
		return nil, err
	}
	n = max(n, 1)
	var list []Sample
	band := max(n/10, 1) // pairs around each depth
	for text := 0; text*band < c.Samples; text++ {
		lines := draw(c.random(0, text), n)
		for _, depth := range c.Depths {
			from := min(max(int(math.Round(depth*float64(n)))-band/2, 0), n-band)
			for i := text * band; i < min((text+1)*band, c.Samples); i++ {
				about := from + i%band
				list = append(list, Sample{Prompt: asked(lines, about), Depth: depth, Index: i, Answers: []string{lines[about]["key"]}, Need: 1})
			}
		}
	}
	return list, nil
}
