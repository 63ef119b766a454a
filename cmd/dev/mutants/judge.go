package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rope-rewrite/rope-rewrite/cmd/dev/internal/mutant"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// outcome is what came of a mutant.
type outcome struct {
	Verdict mutant.Verdict
	Text    string // the export, what was changed, and why it is judged so
	Differs bool   // from its export, in float64
}

// court makes and judges mutants of some exports.
type court struct {
	eng    engine.Engine
	worker []string // that evaluates for a rewrite; nil for this process
	models []string
	differ bool
	exact  map[string]mutant.Logits // of exports, in float64
}

// try makes and judges the mutant of a seed. folder is where its files stay, "" for nowhere.
func (c *court) try(ctx context.Context, seed uint64, folder string) (outcome, error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	path := c.models[rng.IntN(len(c.models))]
	m, err := onnx.Open(path)
	if err != nil {
		return outcome{}, err
	}
	defer m.Close()
	what, ok := mutant.Change(m, rng)
	if !ok {
		return outcome{Verdict: mutant.NotRun, Text: "nothing could be changed"}, nil
	}
	if folder == "" {
		if folder, err = os.MkdirTemp("", "mutant"); err != nil {
			return outcome{}, err
		}
		defer os.RemoveAll(folder)
	}
	v, why, err := mutant.Judge(ctx, c.eng, m, folder, c.worker)
	o := outcome{Verdict: v, Text: strings.Join([]string{filepath.Base(filepath.Dir(path)), what, why}, ": ")}
	if err == nil && v.Judged() && c.differ {
		o.Differs = c.differs(ctx, path, filepath.Join(folder, mutant.File))
	}
	return o, err
}

// differs reports whether a mutant gives other logits than its export; false for one that cannot be
// computed in float64 (a fused op).
func (c *court) differs(ctx context.Context, export, file string) bool {
	want, known := c.exact[export]
	if !known {
		want, _ = mutant.Exact(ctx, c.eng, export)
		if c.exact == nil {
			c.exact = map[string]mutant.Logits{}
		}
		c.exact[export] = want
	}
	got, err := mutant.Exact(ctx, c.eng, file)
	return want != nil && err == nil && want.Off(got) > 1e-9
}

const (
	patience = time.Minute // for one verdict
	memory   = 8 << 30     // bytes of address space that a judge may take beyond its start
	most     = 500         // verdicts of one judge: what ONNX Runtime does not give back ends with it
)

// serveSeeds is what a judge does: it reads a seed a line and writes an outcome a line.
func serveSeeds(in io.Reader, out io.Writer, models []string, differ bool) error {
	if err := engine.LimitMemory(memory); err != nil {
		return err
	}
	eng, err := engine.NewLocal(engine.Config{Threads: 1, Runtime: os.Getenv(customop.RuntimeVariable), Library: os.Getenv(customop.LibraryVariable)})
	if err != nil {
		return err
	}
	c := court{eng: eng, models: models, differ: differ}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var seed uint64
		if _, err := fmt.Sscan(lines.Text(), &seed); err != nil {
			return err
		}
		o, err := c.try(context.Background(), seed, "")
		if err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(o); err != nil {
			return err
		}
	}
	return nil
}

// judge is a process that judges. It is started when it is needed; the zero value has none.
type judge struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	given   int
}

// ask has a seed judged. The error says that the process ended, or was ended after a minute.
func (j *judge) ask(models []string, differ bool, seed uint64) (o outcome, err error) {
	if j.given++; j.given > most {
		j.close()
	}
	if j.command == nil {
		if err := j.start(models, differ); err != nil {
			return o, err
		}
	}
	late := time.AfterFunc(patience, func() { _ = j.command.Process.Kill() })
	defer late.Stop()
	_, err = fmt.Fprintln(j.in, seed)
	line, readErr := j.out.ReadBytes('\n')
	if err = errors.Join(err, readErr); err == nil {
		err = json.Unmarshal(line, &o)
	}
	if err != nil {
		j.close()
	}
	return o, err
}

func (j *judge) start(models []string, differ bool) (err error) {
	c := exec.Command(os.Args[0], append([]string{"-judge", fmt.Sprintf("-differ=%t", differ)}, models...)...)
	if j.in, err = c.StdinPipe(); err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	j.command, j.out, j.given = c, bufio.NewReader(out), 1
	return nil
}

// close ends the process, if there is one.
func (j *judge) close() {
	if j.command == nil {
		return
	}
	_ = j.in.Close()
	_ = j.command.Wait() // it ended as it was asked, or its seed is judged again
	j.command = nil
}
