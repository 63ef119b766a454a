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
	ask := func(answer, name, question, begin string) {
		about = append(about, questionDrawn{strings.ReplaceAll(question, "NAME", name), strings.ReplaceAll(begin, "NAME", name), []string{answer}})
	}
	switch i % 4 {
	case 0:
		name, founder, year, trade, animal := w.town(), w.person(), fmt.Sprint(w.year()), pick(w.rng, trades), pick(w.rng, animals)
		text = fmt.Sprintf("%s is a small town in a wide valley. %s was founded in %s. The founder of %s was %s. The people of %s live from %s. The coat of arms of %s shows a %s.", name, name, year, name, founder, name, trade, name, animal)
		ask(year, name, "In which year was NAME founded?", "NAME was founded in")
		ask(founder, name, "Who was the founder of NAME?", "The founder of NAME was")
		ask(trade, name, "What do the people of NAME live from?", "The people of NAME live from")
		ask(animal, name, "Which animal does the coat of arms of NAME show?", "The coat of arms of NAME shows a")
	case 1:
		name, head, year, town, color := w.name("co", "tec", "corp", "works"), w.person(), fmt.Sprint(w.year()), w.town(), pick(w.rng, colors)
		text = fmt.Sprintf("%s makes lamps and clocks. The factory of %s stands in %s. The factory of %s was opened in %s. The director of %s is %s. The delivery vans of %s are painted %s.", name, name, town, name, year, name, head, name, color)
		ask(town, name, "Where does the factory of NAME stand?", "The factory of NAME stands in")
		ask(year, name, "In which year was the factory of NAME opened?", "The factory of NAME was opened in")
		ask(head, name, "Who is the director of NAME?", "The director of NAME is")
		ask(color, name, "In which color are the delivery vans of NAME painted?", "The delivery vans of NAME are painted")
	case 2:
		name, captain, year, port, cargo := w.name("a", "ia", "ora", "ella"), w.person(), fmt.Sprint(w.year()), w.town(), pick(w.rng, trades)
		text = fmt.Sprintf("The ship %s had two masts. The ship %s was built in %s. The home port of the ship %s was %s. The captain of the ship %s was %s. The cargo of the ship %s was %s.", name, name, year, name, port, name, captain, name, cargo)
		ask(year, name, "In which year was the ship NAME built?", "The ship NAME was built in")
		ask(port, name, "What was the home port of the ship NAME?", "The home port of the ship NAME was")
		ask(captain, name, "Who was the captain of the ship NAME?", "The captain of the ship NAME was")
		ask(cargo, name, "What was the cargo of the ship NAME?", "The cargo of the ship NAME was")
	default:
		name, town, year, field, tool := w.person(), w.town(), fmt.Sprint(w.year()), pick(w.rng, fields), pick(w.rng, tools)
		text = fmt.Sprintf("%s is remembered as a quiet person who never owned a watch. The birthplace of %s is %s. The year of birth of %s is %s. As a student %s learned %s. In the evening %s played the %s.", name, name, town, name, year, name, field, name, tool)
		ask(town, name, "What is the birthplace of NAME?", "The birthplace of NAME is")
		ask(year, name, "What is the year of birth of NAME?", "The year of birth of NAME is")
		ask(field, name, "What did NAME learn as a student?", "As a student NAME learned")
		ask(tool, name, "What did NAME play in the evening?", "In the evening NAME played the")
	}
	for range 3 { // what has nothing to do with it
		text += " " + remark(w.rng, 2+w.rng.IntN(3))
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
	ask := func(answer, question, begin string) {
		of := kind[1] + " of the " + kind[0] + " " + title
		about = append(about, questionDrawn{fmt.Sprintf(question, of), "The " + of + " " + begin, []string{answer}})
	}
	ask(town, "In which town was the %s born?", "was born in")
	ask(year, "In which year was the %s born?", "was born in the year")
	ask(field, "What did the %s study?", "studied")
	ask(tool, "Which instrument did the %s play?", "played the")
	work += " " + remark(w.rng, 3) + " " + remark(w.rng, 4)
	person += " " + remark(w.rng, 3) + " " + remark(w.rng, 4)
	return work, person, about
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
