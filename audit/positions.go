package audit

import "fmt"

// positions compares how many positions the model is for. Tables of cosines and sines
// end; where the graph computes angles it takes any position.
func (s *subject) positions() (lines []Line) {
	rows := s.survey.Positions
	config, genai := s.claims.config.Positions(), s.claims.genai.Context
	for _, claim := range s.sizes(config, genai) {
		claim.What = "max_position_embeddings"
		if rows == 0 {
			claim.Verdict, claim.Why = NotMeasured, "angles are computed: no table of cosines limits the positions"
		} else {
			value := config.Value
			if claim.Expected == short(genai.Value) {
				value = genai.Value
			}
			claim.Found = fmt.Sprintf("tables of %d", rows)
			claim = judged(claim, float64(rows) >= value)
		}
		lines = append(lines, claim)
	}
	if config.Given() && genai.Value > config.Value {
		l := line("context_length", short(genai.Value), "genai_config.json: "+genai.Key, "")
		l.Verdict, l.Why = Differs, fmt.Sprintf("%s is %s: no more positions were trained", s.claims.from(config.Key), short(config.Value))
		lines = append(lines, l)
	}
	return lines
}
