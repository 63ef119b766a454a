package task

import (
	"math/rand/v2"
	"strings"
)

// proseOf are the first n sentences of a text without the blanks behind them, from its beginning again where it has fewer. Without
// a text they are made.
func proseOf(text string, n int) (list []string) {
	if text == "" {
		return essay(n)
	}
	some := firstSentences(text, n)
	for i := range n {
		list = append(list, strings.TrimSpace(some[i%len(some)]))
	}
	return list
}

// essay is a text of n sentences that states no fact and does not repeat itself soon: paragraphs about one thing each.
func essay(n int) (list []string) {
	rng := rand.New(rand.NewPCG(2024, 6654))
	var subject, other string
	for i := 0; len(list) < n; i++ {
		if i%5 == 0 {
			subject, other = pick(rng, subjects), pick(rng, subjects)
		}
		list = append(list, remarkOn(rng, i%5, subject, other))
	}
	return list
}

// remark is a sentence from some place of a paragraph, about anything.
func remark(rng *rand.Rand, place int) string {
	return remarkOn(rng, place, pick(rng, subjects), pick(rng, subjects))
}

func remarkOn(rng *rand.Rand, place int, subject, other string) string {
	text := filled(pick(rng, remarks[place]), map[string]string{
		"subject": subject, "other": other, "people": pick(rng, people), "verb": pick(rng, deeds), "quality": pick(rng, qualities),
		"place": pick(rng, spots), "time": pick(rng, times), "thing": pick(rng, nouns), "adjective": pick(rng, adjectives),
	})
	return strings.ToUpper(text[:1]) + text[1:]
}

var subjects = []string{
	"writing", "gardening", "good work", "teaching", "travelling on foot", "learning a craft", "building a house", "keeping bees", "reading", "baking bread",
	"starting a small company", "making music", "cooking for others", "drawing", "repairing old tools", "living in a big city", "living by the sea",
	"growing fruit", "talking with strangers", "planning a long journey", "looking at the sky", "running a shop", "making furniture", "studying history",
	"thinking about the weather", "painting", "walking in the woods", "raising animals", "sailing", "solving hard problems", "telling stories", "playing chess",
}

var people = []string{"beginners", "old masters", "most people", "children", "farmers", "my neighbors", "scholars", "merchants", "young people", "good teachers", "the people I know", "clever students", "patient workers", "travellers", "those who succeed", "those who give up"}

var deeds = []string{"start too late", "take their time", "ask simple questions", "forget what they know", "trust their hands", "make the same mistake", "look for help", "find joy in small things", "change their minds", "work in the morning", "wait for the right moment", "talk more than they do", "learn from each other", "keep what is useful", "expect too much", "notice the details"}

var qualities = []string{"patience", "curiosity", "courage", "attention", "luck", "practice", "taste", "care", "humor", "discipline", "imagination", "trust", "good health", "common sense", "a quiet room", "an open mind"}

var spots = []string{"in a small town", "at the edge of a forest", "in a narrow street", "near the harbor", "in an old workshop", "on a farm in the hills", "in a crowded market", "at a kitchen table", "in the corner of a library", "by a slow river"}

var times = []string{"early in the morning", "on a winter evening", "after a long day", "in the first weeks of spring", "on a rainy afternoon", "at the end of the year", "before the sun is up", "during the long summer", "when nobody is watching", "once in a while"}

// remarks are sentences by their place in a paragraph.
var remarks = [5][]string{
	{
		"There is something about {subject} that {people} rarely put into words.",
		"When I was young, I thought that {subject} was a matter of {quality}.",
		"People often ask what {subject} and {other} have in common.",
		"Few things are as easily misunderstood as {subject}.",
		"If you want to understand {subject}, you should watch {people} {time}.",
		"I first heard of {subject} {place}, from a man with a {adjective} {thing}.",
		"Everyone has an opinion about {subject}, and hardly anyone has tried it {place}.",
	},
	{
		"It takes {quality}, of course, but it also takes a {adjective} {thing} and somebody who cares about it.",
		"The difference between {people} and {people} is that only the first {verb}.",
		"What matters is not the {thing} itself, but how {adjective} it looks {time}.",
		"You see it best {place}, where {people} {verb}.",
		"In the beginning {people} {verb}, and that is no reason to be ashamed.",
		"It is a bit like {other}: without {quality} nothing {adjective} ever comes of it.",
		"At first sight it seems to be all about {quality}, and then one day it is not.",
	},
	{
		"A friend of mine keeps a {adjective} {thing} on the shelf to remember this.",
		"I have seen {people} {place} who {verb}, and they seemed happy.",
		"Perhaps that is why {people} {verb} {time}.",
		"Some say that a {thing} teaches more about it than any book does.",
		"For years I believed the opposite, mostly because {people} {verb}.",
		"That is easier to say than to do, especially {time}.",
		"The {adjective} {thing} in the story is only a picture, and a rather good one.",
	},
	{
		"The same is true of {other}, though {people} would not admit it.",
		"Still, {quality} alone is not enough, and neither is a {adjective} {thing}.",
		"Whoever has lived {place} knows that {people} {verb}.",
		"It helps to do it {time}, slowly, and with some {quality}.",
		"We tend to praise {quality} and forget the {adjective} {thing} beside it.",
		"None of this can be learned {time}, which is a comfort to {people}.",
		"And yet {people} {verb}, as if it were the easiest thing in the world.",
	},
	{
		"So much for {subject}.",
		"In the end it is {quality} that counts, {place} as anywhere else.",
		"That may be the reason why {subject} never goes out of fashion.",
		"I would not trade it for {other}, not even {time}.",
		"Maybe {people} should talk about it more often.",
		"The rest is {quality}, and a {adjective} {thing} now and then.",
		"It sounds like a small thing, but {people} have built their lives on it.",
	},
}
