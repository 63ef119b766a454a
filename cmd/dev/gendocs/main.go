// Gendocs writes docs/methods.md from the table of methods in package rope.
//
//	go run ./cmd/dev/gendocs -o docs/methods.md
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/encoding"
)

func main() {
	out := flag.String("o", "", "file to write; standard output if empty")
	flag.Parse()
	var err error
	if *out == "" {
		_, err = os.Stdout.WriteString(methods())
	} else {
		err = os.WriteFile(*out, []byte(methods()), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gendocs:", err)
		os.Exit(1)
	}
}

const head = `<!-- Generated from the table in rope/ by "go generate ./rope". Do not edit. -->

# Methods

Every method by its axis, to look one up; [Choose a method](choosing.md) helps to decide.

A method is written ` + "`name`" + ` or ` + "`name:key=value,key=value`" + `; ` + "`rope-rewrite methods`" + `
lists them, ` + "`rope-rewrite methods NAME`" + ` says what stands here. Keys are Hugging Face's where it has them;
` + "`--rope-parameters`" + ` takes its dictionary, or the whole config.json with it, for the methods marked so.
Unknown keys, wrong types and values out of range are errors; the case of names and keys does not matter. Numbers of
tokens may be written with k or M, 1024 and 1024²: ` + "`8k`" + ` is 8192, ` + "`128K`" + ` is 131072. No other number takes
them. Where it says so, a share of the context that the model is meant for (` + "`--context`" + `) may stand: ` + "`L/3`" + ` is
a third of it.

There is one method for each axis, or several that set different parts of it: ` + "`--scaling yarn --scaling log-n`" + ` sets frequencies
and a temperature, ` + "`--mask anchor --mask first-keys:count=1,window=4k`" + ` documents and a window. The order does not matter. *Use* says
which part a method sets; one that sets none stands alone.

n is the number of rotated channels, i = 0 … n/2 − 1 the channel pair, θ_i its frequency in the graph (radians per
position), L0 the trained context, p a token's position, d the distance from a query back to a key.
`

const encodingsHead = `
## Encodings

How a model may tell positions apart. All are values in Go (package ` + "`rope/encoding`" + `); ` + "`inspect`" + ` names those that it
recognises. ` + "`rope-rewrite plot bias alibi`" + ` draws what an encoding adds to scores, ` + "`plot decay xpos`" + ` how one weakens. d is the
distance, h = 1 … H the head, q and k the query and the key, R(p) the rotation at position p.

| encoding | Go | formula | where it is recognised | what can be changed | source |
|---|---|---|---|---|---|
`

const absent = `
## Not here

Two training-free methods that the operator cannot state:

| method | what it computes | what the operator lacks |
|---|---|---|
| LaMPE, arXiv:2508.02308 (from the authors' code, scar-on/LaMPE at 4e3c91f) | for a prompt of N tokens M(p) = ⌊p·m/(N − 1)⌋ with m = ⌊c/(1 + e^(−(a·N + b)))⌋; distance d stays d below h, is M(p_query) − M(p_key) + h − M(h) − 1 up to N − r, and beyond that d less a constant, so that it goes on from there; r is the last position with M(r) = M(t). The authors have h = 512, t = 200, and a, b, c fitted for Llama 2, 3, 3.1 and Mistral | groups of positions whose length is no whole number (band_groups are integers), and bands that depend on the number of tokens of the text (attributes are fixed when the model is written) |
| DPE, arXiv:2504.18857 (from the authors' code, LuLuLuyi/DPE) | Self-Extend with a group size of its own for each eighth of the channel pairs, found by a search; optionally only for some channels of each head | a position map for each channel pair: bands are those of all pairs, and position_axes needs one band |
`

// sharedBy is how many methods of an axis must have the same key for it to stand once, before them.
const sharedBy = 4

// methods renders the whole page.
func methods() string {
	var page strings.Builder
	page.WriteString(head)
	axis, shared := "", []string(nil)
	for m := range rope.Methods() {
		if m.Axis.String() != axis {
			axis = m.Axis.String()
			shared = sharedRows(m.Axis)
			fmt.Fprintf(&page, "\n## --%s\n", axis)
			if len(shared) > 0 {
				fmt.Fprintf(&page, "\nKeys of several methods, which *also* names below:\n\n%s%s", tableHead, strings.Join(shared, ""))
			}
		}
		page.WriteString(method(m, shared))
	}
	page.WriteString(encodingsHead)
	for d := range encoding.All() {
		fmt.Fprintf(&page, "| %s | `%s` | %s | %s | %s | %s |\n", d.Name, d.Go, strings.ReplaceAll(d.Formula, "|", `\|`), d.Seen, d.Changes, d.Source)
	}
	page.WriteString(absent)
	return page.String()
}

// sharedRows are the rows that many methods of an axis have in common, in their order.
func sharedRows(axis rope.Axis) (rows []string) {
	count := map[string]int{}
	for m := range rope.Methods() {
		if m.Axis != axis {
			continue
		}
		for _, p := range m.Params {
			if count[row(p)]++; count[row(p)] == sharedBy {
				rows = append(rows, row(p))
			}
		}
	}
	return rows
}

const tableHead = "| key | value | default | meaning |\n|---|---|---|---|\n"

func row(p rope.Param) string {
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", p.Name, p.Values(), p.Default, p.Doc)
}

func method(m rope.Method, shared []string) string {
	var s strings.Builder
	fmt.Fprintf(&s, "\n### %s\n\n%s\n\n", m.Name, m.Doc)
	fmt.Fprintf(&s, "- Formula: %s\n", m.Formula)
	fmt.Fprintf(&s, "- Source: %s\n", m.Source)
	fmt.Fprintf(&s, "- Use: %s\n", strings.Join(m.Labels(), "; "))
	if m.Measured != "" {
		fmt.Fprintf(&s, "- Measured: %s ([how](choosing.md#smollm2-measured))\n", m.Measured)
	}
	if m.HF {
		fmt.Fprintf(&s, "- Hugging Face: `rope_type` `%s`\n", m.Name)
	}
	var also, own []string
	for _, p := range m.Params {
		if slices.Contains(shared, row(p)) {
			also = append(also, "`"+p.Name+"`")
		} else {
			own = append(own, row(p))
		}
	}
	if len(also) > 0 {
		fmt.Fprintf(&s, "- Also: %s\n", strings.Join(also, ", "))
	}
	if len(own) > 0 {
		s.WriteString("\n" + tableHead + strings.Join(own, ""))
	}
	return s.String()
}
