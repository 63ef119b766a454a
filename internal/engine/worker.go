package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Worker evaluates in a child process. When the child dies or is too slow it
// is ended, the call returns ErrDied or ErrTimeout, and the next call starts
// a new one. What was killed from outside is evaluated once more.
type Worker struct {
	config  Config
	command string
	args    []string

	mu       sync.Mutex
	child    *child
	version  string
	nextID   int
	timeouts int
}

// frugal lets a child give memory back: Go's collector runs more often, and large
// blocks of glibc's malloc go straight to the system and back. Measured on
// SmolLM2: half the resident memory, no more time. It answers one request at a time,
// so that a second processor would only collect more often: a sixth of an analysis'
// processor time. What the user's environment sets comes later and so counts.
var frugal = []string{"GOMAXPROCS=1", "GOGC=75", "MALLOC_ARENA_MAX=1", "MALLOC_MMAP_THRESHOLD_=131072", "MALLOC_TRIM_THRESHOLD_=131072"}

// maxTimeouts is how many evaluations may take too long before the engine
// gives up: a graph with many such parts must not take many times as long.
const maxTimeouts = 3

type child struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	wire   *wire
	stderr *tail
}

// NewWorker returns an engine whose child is command with args, a program that
// calls ServeIfWorker. The child starts at once, so that a missing or too old
// ONNX Runtime is an error here.
func NewWorker(c Config, command string, args ...string) (*Worker, error) {
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	if c.Memory == 0 {
		c.Memory = 32 << 30
	}
	w := &Worker{config: c, command: command, args: args}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w, w.start()
}

func (w *Worker) start() error {
	cmd := exec.Command(w.command, w.args...)
	cmd.Env = slices.Concat(frugal, os.Environ(), []string{workerVariable + "=1"})
	stderr := &tail{}
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	widen(in)
	widen(out)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start the evaluating process: %w", err)
	}
	w.child = &child{cmd: cmd, in: in, wire: newWire(out, in), stderr: stderr}
	_, err = w.call(context.Background(), request{Config: &w.config}, nil)
	return err
}

// Version returns the version of ONNX Runtime that evaluates, as that says it.
func (w *Worker) Version() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.version
}

// call sends one request and waits for its answers: one, or one of each run up to the first that fails; w.mu is
// held. Where an answer takes too long or is not wanted any more the child is ended, and with it the wait. (A
// goroutine that waits in place of this one would cost a rewrite a tenth of its processor time.)
func (w *Worker) call(ctx context.Context, q request, blobs [][]byte) (outputs []map[string]Tensor, _ error) {
	c := w.child
	end := func() { c.cmd.Process.Kill() }
	timer := time.AfterFunc(w.config.Timeout, end)
	unwatch := context.AfterFunc(ctx, end)
	err := c.wire.send(q, blobs)
	late := false
	var r response
	for n := 0; err == nil && r.Error == "" && n < max(len(q.Runs), 1); n++ {
		r = response{}
		if blobs, err = c.wire.receive(&r); err == nil {
			var results map[string]Tensor
			results, _, err = unpack(r.Outputs, blobs)
			outputs = append(outputs, results)
			late = !timer.Reset(w.config.Timeout) || late
		}
	}
	late = !timer.Stop() || late
	unwanted := !unwatch()
	switch {
	case unwanted:
		w.bury()
		return outputs, ctx.Err()
	case late:
		w.bury()
		w.timeouts++
		return outputs, fmt.Errorf("%w (more than %v)", ErrTimeout, w.config.Timeout)
	case err != nil:
		last, killed := w.bury()
		switch {
		case wantsMemory(last):
			return outputs, fmt.Errorf("%w; %w%s", ErrMemory, ErrDied, last)
		case killed:
			return outputs, fmt.Errorf("%w%s", errKilled, last)
		}
		return outputs, fmt.Errorf("%w%s", ErrDied, last)
	case wantsMemory(r.Error):
		err = fmt.Errorf("%w: %s", ErrMemory, r.Error)
	case r.Error != "":
		err = errors.New(r.Error)
	case r.Version != "":
		w.version = r.Version
	}
	if err != nil {
		outputs = outputs[:len(outputs)-1]
	}
	return outputs, err
}

// wantsMemory recognises what ONNX Runtime, C++ and Go say when the system gives
// them no more memory.
func wantsMemory(said string) bool {
	for _, words := range []string{"Failed to allocate memory", "bad_alloc", "out of memory", "annot allocate memory", "failed to map segment"} {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}

// errKilled is an ErrDied that was perhaps not ONNX Runtime's doing: the system kills for lack of memory, and so
// may another program.
var errKilled = fmt.Errorf("%w, or something else ended the process", ErrDied)

// again does once more what was killed. What ONNX Runtime does to its own process it would do again, and a graph
// must not be judged by what happens around it.
func again(f func() error) error {
	err := f()
	if errors.Is(err, errKilled) {
		err = f()
	}
	return err
}

// bury ends the child and returns what it last said, and whether it was killed.
func (w *Worker) bury() (last string, killed bool) {
	c := w.child
	w.child = nil
	c.in.Close()
	c.cmd.Process.Kill()
	err := c.cmd.Wait()
	status, _ := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if last = lastWords(c.stderr.String()); last == "" && err != nil {
		last = err.Error()
	}
	if last != "" {
		last = ": " + last
	}
	return last, status.Signaled() && status.Signal() == syscall.SIGKILL
}

// lastWords finds in what a process wrote the line that says why it ended:
// that of a signal or a panic, behind which stacks and registers follow, or
// the last one.
func lastWords(stderr string) (last string) {
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		for _, start := range []string{"SIG", "fatal error: ", "panic: ", "terminate called", "runtime: "} {
			if strings.HasPrefix(line, start) {
				return line
			}
		}
		if line != "" {
			last = line
		}
	}
	return last
}

// Load loads the model in the child.
func (w *Worker) Load(ctx context.Context, m Model) (Session, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &workerSession{worker: w, model: m}
	return s, again(func() error { return s.ensure(ctx) })
}

// Close ends the child.
func (w *Worker) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.child != nil {
		w.bury()
	}
	return nil
}

type workerSession struct {
	worker *Worker
	model  Model
	child  *child // the one that holds the session
	id     int
}

// ensure loads the model into the living child, which may be a new one.
func (s *workerSession) ensure(ctx context.Context) error {
	w := s.worker
	if w.timeouts >= maxTimeouts {
		return fmt.Errorf("%w: %d evaluations before it did", ErrTimeout, w.timeouts)
	}
	if w.child == nil {
		if err := w.start(); err != nil {
			return err
		}
	}
	if s.child == w.child {
		return nil
	}
	w.nextID++
	s.id = w.nextID
	m, blobs := s.model, [][]byte(nil)
	if m.Bytes != nil {
		m.Bytes, blobs = nil, [][]byte{m.Bytes}
	}
	if _, err := w.call(ctx, request{ID: s.id, Load: &m}, blobs); err != nil {
		return err
	}
	s.child = w.child
	return nil
}

func (s *workerSession) Run(ctx context.Context, feeds map[string]Tensor) (map[string]Tensor, error) {
	outputs, err := s.RunAll(ctx, []Call{{s, feeds}})
	if err != nil {
		return nil, err
	}
	return outputs[0], nil
}

// RunAll sends all calls in one message: for a small piece the way there and back takes longer than the evaluation.
func (s *workerSession) RunAll(ctx context.Context, calls []Call) (outputs []map[string]Tensor, err error) {
	w := s.worker
	w.mu.Lock()
	defer w.mu.Unlock()
	err = again(func() error {
		q, blobs := request{Runs: make([]called, len(calls))}, [][]byte(nil)
		for i, c := range calls {
			q.Runs[i].Feeds, blobs = pack(c.Feeds, blobs)
			of := c.Session.(*workerSession)
			if err := of.ensure(ctx); err != nil {
				return err
			}
			q.Runs[i].ID = of.id
		}
		outputs, err = w.call(ctx, q, blobs)
		return err
	})
	return outputs, err
}

func (s *workerSession) Close() error {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	if s.child == nil || s.child != s.worker.child {
		return nil // it went with its child
	}
	_, err := s.worker.call(context.Background(), request{ID: s.id, Close: true}, nil)
	return err
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.buf.Len() > 64<<10 {
		t.buf.Reset()
	}
	return t.buf.Write(p)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
