package task

import "math/rand/v2"

// fact is the beginning of a sentence, what asks for its end, and the words that may end it.
type fact struct {
	begins, question string
	ends             []string // nil is a number
}

// facts are of kinds so different that a small model does not take one for another, as it does with the numbers of
// niah_multikey_1. So a few questions may share a long text, which is what costs.
var facts = []fact{
	{"The pass key is", "What is the pass key?", nil},
	{"The secret colour is", "What is the secret colour?", []string{"purple", "orange", "silver", "yellow", "crimson", "turquoise", "black", "white", "green", "brown", "pink", "golden"}},
	{"The hidden animal is the", "Which animal is hidden?", []string{"giraffe", "penguin", "tiger", "rabbit", "dolphin", "camel", "spider", "eagle", "monkey", "horse", "turtle", "wolf"}},
	{"The meeting takes place in", "Where does the meeting take place?", cities},
	{"The name of the winner is", "What is the name of the winner?", []string{"Maria", "Peter", "Sarah", "Thomas", "Linda", "Victor", "Helen", "Oscar", "Julia", "Martin", "Clara", "Simon"}},
	{"The king's favourite food is", "What is the king's favourite food?", []string{"cheese", "rice", "honey", "pizza", "soup", "bread", "chocolate", "fish", "apples", "potatoes", "noodles", "beans"}},
	{"The musician plays the", "What does the musician play?", []string{"violin", "trumpet", "guitar", "piano", "flute", "drums", "cello", "harp", "organ", "clarinet", "banjo", "tuba"}},
}

// kinds makes texts that each hide one fact of some kinds; Form.Share samples ask about one.
func kinds(c *Cell) ([]Sample, error) {
	return c.books(1, func(rng *rand.Rand, n int) (b book) {
		pieces := proseOf(c.Form.Haystack, n)
		var needles []string
		for _, i := range rng.Perm(len(facts))[:min(max(c.Form.Share, 1), len(facts))] {
			end := number(rng)
			if list := facts[i].ends; list != nil {
				end = pick(rng, list)
			}
			values := map[string]string{"name": facts[i].begins, "key": end}
			needles = append(needles, filled(c.Form.Needle, values))
			b.asked = append(b.asked, asked{map[string]string{"name": facts[i].begins, "question": facts[i].question}, []string{end}})
		}
		b.haystack = c.Form.joined(insert(pieces, needles, depths(rng, n, len(needles))))
		return b
	})
}
