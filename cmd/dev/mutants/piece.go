package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/rope-rewrite/rope-rewrite/cmd/dev/internal/mutant"
)

// piece is what a run has judged: the mutants of the seeds from First on, up to Next.
type piece struct {
	Commit  string
	Exports []string
	// Provider is the execution provider that runs them; "" is the CPU.
	Provider string `json:",omitempty"`
	First    uint64
	Next     uint64
	counts
	WrongOnes []string // seeds with what was changed
	Seconds   float64  // that judging took
}

// counts are numbers of mutants.
type counts struct {
	Judged, Same, Kept, Wrong int
	Control, ControlChanged   int // of those that are judged: of control nodes alone, and how many of these give other logits
	Drawn, DrawnChanged       int // a tenth of the others
}

// Made is how many mutants were made.
func (p *piece) Made() int { return int(p.Next - p.First) }

// add counts what came of the next seed.
func (p *piece) add(o outcome) {
	if o.Verdict == mutant.Wrong {
		p.WrongOnes = append(p.WrongOnes, fmt.Sprintf("%d: %s", p.Next, o.Text))
	}
	p.Next++
	if !o.Verdict.Judged() {
		return
	}
	p.Judged++
	switch o.Verdict {
	case mutant.Same:
		p.Same++
	case mutant.Unchanged:
		p.Kept++
	case mutant.Wrong:
		p.Wrong++
	}
	changed := 0
	if o.Differs {
		changed = 1
	}
	switch {
	case o.Control:
		p.Control++
		p.ControlChanged += changed
	case o.Compared:
		p.Drawn++
		p.DrawnChanged += changed
	}
}

func (p *piece) String() string {
	text := fmt.Sprintf("seeds %d to %d: judged %d, same %d, unchanged %d, wrong %d; of %d of control nodes %d give other logits than their export",
		p.First, p.Next-1, p.Judged, p.Same, p.Kept, p.Wrong, p.Control, p.ControlChanged)
	if p.Drawn > 0 {
		text += fmt.Sprintf(", of %d others %d", p.Drawn, p.DrawnChanged)
	}
	return text + fmt.Sprintf("; %.1f made and %.1f judged a second", float64(p.Made())/p.Seconds, float64(p.Judged)/p.Seconds)
}

// readPiece reads the file of a piece; nil where there is none.
func readPiece(path string) (*piece, error) {
	text, err := os.ReadFile(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p := &piece{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// save writes the piece beside its file and renames it.
func (p *piece) save(path string) error {
	text, err := json.MarshalIndent(p, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
