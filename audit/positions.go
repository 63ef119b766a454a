package audit

import (
	"cmp"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
)

// positions compares how many positions the model is for. Tables of cosines and sines
// end; where the graph computes angles it takes any position.
func (s *subject) positions() (lines []Line) {
	rows := s.survey.Positions
	config, genai := s.claims.config.Positions(), s.claims.genai.Context
	limit := cmp.Or(genai, s.claims.genai.Longest)
	for _, claim := range s.sizes(config, limit) {
		claim.What = "max_position_embeddings"
		if rows == 0 {
			claim.Verdict, claim.Why = NotMeasured, "angles are computed: no table of cosines limits the positions"
		} else {
			value := config.Value
			if claim.Expected == short(limit.Value) {
				value = limit.Value
			}
			claim.Found = fmt.Sprintf("tables of %d", rows)
			claim = judged(claim, float64(rows) >= value)
		}
		lines = append(lines, claim)
	}
	return append(lines, s.lengths(config, genai)...)
}

// lengths names what genai_config.json says of lengths that config.json or it itself contradicts. GenAI ends with an error
// where max_length exceeds context_length.
func (s *subject) lengths(config, genai modelconfig.Number) (lines []Line) {
	within := func(what string, claim, limit modelconfig.Number, from, why string) {
		if limit.Given() && claim.Value > limit.Value {
			l := line(what, short(claim.Value), "genai_config.json: "+claim.Key, "")
			l.Verdict, l.Why = Differs, fmt.Sprintf("%s is %s: %s", from, short(limit.Value), why)
			lines = append(lines, l)
		}
	}
	trained := func(what string, claim modelconfig.Number) {
		within(what, claim, config, s.claims.from(config.Key), "no more positions were trained")
	}
	trained("context_length", genai)
	if longest := s.claims.genai.Longest; genai.Given() {
		within("max_length", longest, genai, "genai_config.json: "+genai.Key, "GenAI then generates nothing")
	} else {
		trained("max_length", longest)
	}
	return lines
}
