package rope

import "strings"

// Labels says in a few words what to expect of a method: whether models need to
// be fine-tuned for it, whether it matters how a text is cut into calls, what it
// does to the cache, and which part of its axis it sets.
func (m Method) Labels() []string {
	labels := []string{"works without fine-tuning"}
	if m.FineTuned {
		labels[0] = "meant for models that were fine-tuned with it"
	}
	switch {
	case m.OneCall:
		labels = append(labels, "only for whole texts in one call, in models without a cache")
	case m.ByLength:
		labels = append(labels, "same result however a text is cut into calls; not with length=run, which caches keys un-rotated")
	default:
		labels = append(labels, "same result however a text is cut into calls")
	}
	if m.RawCache {
		labels = append(labels, "keys are cached un-rotated, so the cache cannot be exchanged with the original model")
	}
	if m.Part != WholeAxis {
		labels = append(labels, "sets "+m.Part.String())
	}
	return labels
}

// Values says what a parameter takes: its kind, its words, its rule.
func (p Param) Values() string {
	text := p.Kind.String()
	switch {
	case p.Kind == Word:
		text = strings.Join(p.Words, " or ")
	case p.Counts:
		text = "a number of tokens"
	}
	if p.Rule.Text != "" {
		kind, or, more := strings.Cut(text, ", or ")
		text = kind + " " + p.Rule.Text
		if more {
			text += ", or " + or
		}
	}
	return text
}
