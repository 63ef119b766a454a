package task

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// world invents things whose names come once, so that a question has one answer.
type world struct {
	rng  *rand.Rand
	seen map[string]bool
}

// name makes a new name of syllables.
func (w world) name(ends ...string) string {
	starts := []string{"Al", "Bar", "Bren", "Cal", "Dor", "El", "Fen", "Gal", "Hal", "Jor", "Kel", "Lan", "Mar", "Nor", "Os", "Pel", "Ral", "Sel", "Tar", "Ul", "Ven", "Wil", "Yor", "Zan"}
	middles := []string{"", "a", "e", "i", "o", "an", "en", "er", "in", "or", "der", "ben", "mi", "ta", "ri", "lo"}
	for tries := 0; ; tries++ {
		name := pick(w.rng, starts)
		for range 1 + tries/50 { // a large world needs longer names
			name += pick(w.rng, middles)
		}
		if name += pick(w.rng, ends); !w.seen[name] {
			w.seen[name] = true
			return name
		}
	}
}

func (w world) town() string {
	return w.name("ville", "ton", "ford", "burg", "dale", "field", "port", "wick")
}

func (w world) person() string {
	first := []string{"Anna", "Peter", "Maria", "John", "Laura", "Thomas", "Clara", "Daniel", "Emma", "Martin", "Julia", "David", "Sarah", "Simon", "Helen", "Paul", "Alice", "Victor", "Nora", "Oscar"}
	return pick(w.rng, first) + " " + w.name("son", "berg", "man", "well", "stone", "by", "ley", "smith")
}

func (w world) year() int { return 1700 + w.rng.IntN(300) }

// trades are what the people of a town live from.
var trades = []string{"glass", "salt", "wool", "honey", "paper", "copper", "tea", "fish", "timber", "cheese", "silk", "marble", "wine", "leather", "coal", "flax"}

// animals are what stands on coats of arms, colors their colors.
var (
	animals = []string{"lion", "eagle", "bear", "wolf", "stag", "swan", "horse", "fox", "owl", "bull", "heron", "otter"}
	colors  = []string{"red", "blue", "green", "yellow", "white", "black", "purple", "orange"}
	fields  = []string{"medicine", "law", "music", "physics", "botany", "geography", "chemistry", "history", "philosophy", "astronomy"}
	tools   = []string{"violin", "piano", "flute", "cello", "harp", "trumpet", "guitar", "organ", "drum", "clarinet"}
)

// thing describes a town, a firm, a ship or a scholar, with questions that the text answers.
func (w world) thing(i int) (text string, about []questionDrawn) {
	ask := func(answer, question string, values ...any) {
		about = append(about, questionDrawn{fmt.Sprintf(question, values...), []string{answer}})
	}
	switch i % 4 {
	case 0:
		name, founder, year, trade, animal, color := w.town(), w.person(), fmt.Sprint(w.year()), pick(w.rng, trades), pick(w.rng, animals), pick(w.rng, colors)
		text = fmt.Sprintf("%s is a small town in a wide valley. It was founded in %s by the merchant %s. The people of %s have always lived from %s. The coat of arms of %s shows a %s %s under three stars.", name, year, founder, name, trade, name, color, animal)
		ask(year, "In which year was the town of %s founded?", name)
		ask(founder, "Who founded the town of %s?", name)
		ask(trade, "What do the people of %s live from?", name)
		ask(animal, "Which animal does the coat of arms of %s show?", name)
	case 1:
		name, head, year, town, color := w.name("co", "tec", "corp", "works"), w.person(), fmt.Sprint(w.year()), w.town(), pick(w.rng, colors)
		text = fmt.Sprintf("The company %s makes lamps and clocks. Its factory stands in %s, where it opened in %s. The director of %s is %s. The delivery vans of the company are painted %s.", name, town, year, name, head, color)
		ask(town, "In which town does the factory of the company %s stand?", name)
		ask(year, "In which year did the factory of the company %s open?", name)
		ask(head, "Who is the director of the company %s?", name)
		ask(color, "In which color are the delivery vans of the company %s painted?", name)
	case 2:
		name, captain, year, port, cargo := w.name("a", "ia", "ora", "ella"), w.person(), fmt.Sprint(w.year()), w.town(), pick(w.rng, trades)
		text = fmt.Sprintf("The ship %s was built in %s and had two masts. Its home port was %s. Under Captain %s the %s carried %s across the northern sea for many years.", name, year, port, captain, name, cargo)
		ask(year, "In which year was the ship %s built?", name)
		ask(port, "What was the home port of the ship %s?", name)
		ask(captain, "Who was the captain of the ship %s?", name)
		ask(cargo, "What did the ship %s carry?", name)
	default:
		name, town, year, field, tool := w.person(), w.town(), fmt.Sprint(w.year()), pick(w.rng, fields), pick(w.rng, tools)
		text = fmt.Sprintf("%s was born in %s in %s and studied %s. Friends remember %s as a quiet person who played the %s in the evening and never owned a watch.", name, town, year, field, name, tool)
		ask(town, "In which town was %s born?", name)
		ask(year, "In which year was %s born?", name)
		ask(field, "What did %s study?", name)
		ask(tool, "Which instrument did %s play?", name)
	}
	return text, about
}

// work describes a work and who made it, in two documents with titles, with questions about the person that
// name the work alone.
func (w world) work(i int) (work, person string, about []questionDrawn) {
	kinds := [4][3]string{{"novel", "author", "written"}, {"opera", "composer", "composed"}, {"bridge", "architect", "designed"}, {"statue", "sculptor", "made"}}
	kind := kinds[i%4]
	title := distinct(w.seen, func() string {
		return "The " + capital(pick(w.rng, adjectives)) + " " + capital(pick(w.rng, nouns))
	})
	name, town, year, field, tool := w.person(), w.town(), fmt.Sprint(w.year()), pick(w.rng, fields), pick(w.rng, tools)
	work = fmt.Sprintf("%s\n%s is a famous %s. It was %s by %s. It is known far beyond its country.", title, title, kind[0], kind[2], name)
	person = fmt.Sprintf("%s\n%s was born in %s in %s. Before becoming a well-known %s, %s studied %s and played the %s.", name, name, town, year, kind[1], name, field, tool)
	ask := func(answer, question string) {
		about = append(about, questionDrawn{fmt.Sprintf(question, kind[1]+" of the "+kind[0]+" "+title), []string{answer}})
	}
	ask(town, "In which town was the %s born?")
	ask(year, "In which year was the %s born?")
	ask(field, "What did the %s study?")
	ask(tool, "Which instrument did the %s play?")
	return work, person, about
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
