package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"time"

	"github.com/rope-rewrite/rope-rewrite/cmd/dev/internal/mutant"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testengine"
)

const (
	patience = time.Minute // for one verdict
	memory   = 8 << 30     // bytes of address space that a judge may take beyond its start
	most     = 5000        // verdicts of one judge: what ONNX Runtime does not give back ends with it
)

// question is a line that a judge reads.
type question struct {
	Seed  uint64
	Whole string // the path of an export that is judged as it is; empty asks for the mutant of the seed
}

func (c *court) answer(ctx context.Context, q question) (outcome, error) {
	if q.Whole != "" {
		return c.whole(ctx, q.Whole)
	}
	return c.try(ctx, q.Seed)
}

// serve is what a judge does: it reads a question a line and writes an outcome a line.
func serve(in io.Reader, out io.Writer, t trial) error {
	if t.provider == "" { // a GPU's driver reserves more address space than any limit
		if err := engine.LimitMemory(memory); err != nil {
			return err
		}
	}
	debug.SetMemoryLimit(12 * remembered) // a tenth faster than four times as much
	eng, err := engine.NewLocal(engine.Config{Threads: 1, Provider: t.provider, Runtime: os.Getenv(customop.RuntimeVariable), Library: os.Getenv(customop.LibraryVariable)})
	if err != nil {
		return err
	}
	c := court{trial: t, judge: mutant.Judge{Engine: eng}, memory: testengine.New(remembered)}
	answers := json.NewEncoder(out)
	for questions := json.NewDecoder(in); ; {
		var q question
		if err := questions.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		o, err := c.answer(context.Background(), q)
		if err != nil {
			return err
		}
		if err := c.able(context.Background(), o, q); err != nil {
			return err // a judge with workers says what is so of this mutant, and another one goes on
		}
		if err := answers.Encode(o); err != nil {
			return err
		}
	}
}

// judge is a process that judges. It is started when it is needed; the zero value has none.
type judge struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	given   int
}

// ask has a judge answer, and where the process ends by itself or takes longer than a minute a court with workers.
func (j *judge) ask(t trial, q question) (outcome, error) {
	o, err := j.once(t, q)
	if err == nil {
		return o, nil
	}
	c, end, err := isolated(t, "")
	if err != nil {
		return outcome{}, err
	}
	defer end()
	return c.answer(context.Background(), q)
}

func (j *judge) once(t trial, q question) (o outcome, err error) {
	if j.given++; j.given > most {
		j.close()
	}
	if j.command == nil {
		if err := j.start(t); err != nil {
			return o, err
		}
	}
	late := time.AfterFunc(patience, func() { _ = j.command.Process.Kill() })
	defer late.Stop()
	err = json.NewEncoder(j.in).Encode(q)
	line, readErr := j.out.ReadBytes('\n')
	if err = errors.Join(err, readErr); err == nil {
		err = json.Unmarshal(line, &o)
	}
	if err != nil {
		j.close()
	}
	return o, err
}

func (j *judge) start(t trial) (err error) {
	c := exec.Command(os.Args[0], append([]string{"-judge", "-provider", t.provider}, t.models...)...)
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
