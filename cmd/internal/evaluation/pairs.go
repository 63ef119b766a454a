package evaluation

import (
	"math"
	"math/rand/v2"
	"strings"
)

// pairs makes the trials of a text of keys and values: a sample asks for one of those that
// stand around the depth, so that all samples of a text share it. Where a text has fewer than
// there are samples, the others get texts of their own.
func pairs(c *cell) ([]Trial, error) {
	const hexadecimal = "0123456789abcdef"
	draw := func(rng *rand.Rand, n int) (lines []map[string]string) {
		for range n {
			lines = append(lines, map[string]string{"name": word(rng, hexadecimal, 8), "key": word(rng, hexadecimal, 8)})
		}
		return lines
	}
	asked := func(lines []map[string]string, about int) (haystack, question, answer string) {
		var text strings.Builder
		for _, line := range lines {
			text.WriteString(filled(c.form.Needle, line))
		}
		name := map[string]string{"name": lines[about]["name"]}
		return text.String(), filled(c.form.Question, name), filled(c.form.Answer, name)
	}
	n, err := c.fit("kv", func(n int) (string, string, string) {
		return asked(draw(c.random("kv", 0, 0), max(n, 1)), 0)
	})
	if err != nil {
		return nil, err
	}
	n = max(n, 1)
	var list []Trial
	band := max(n/10, 1) // pairs around each depth
	for text := 0; text*band < c.samples; text++ {
		lines := draw(c.random("kv", 0, text), n)
		for _, depth := range c.depths {
			from := min(max(int(math.Round(depth*float64(n)))-band/2, 0), n-band)
			for i := text * band; i < min((text+1)*band, c.samples); i++ {
				about := from + i%band
				tokens, err := c.tokens(asked(lines, about))
				if err != nil {
					return nil, err
				}
				list = append(list, Trial{
					Task: "kv", Length: c.length, Depth: depth, Index: i, Tokens: tokens,
					Answers: []string{lines[about]["key"]}, Need: 1, Most: c.form.Tokens,
				})
			}
		}
	}
	return list, nil
}
