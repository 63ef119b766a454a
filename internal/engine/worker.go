package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	ort "github.com/yalue/onnxruntime_go"
)

// workerVariable holds, in a child's environment, that it is a worker.
const workerVariable = "ROPE_REWRITE_WORKER"

type request struct {
	Config *Config  // first request only
	Load   *Model   // its Bytes follow as a blob
	Runs   []called // each has a response of its own, up to the first that fails
	ID     int      // of the session that is loaded or closed
	Close  bool
}

// called is a run of a session, whose feeds follow as blobs.
type called struct {
	ID    int
	Feeds []head
}

type response struct {
	Outputs []head
	Error   string
	Version string // of ONNX Runtime; to the first request only
}

// ServeIfWorker turns the process into a worker when it was started as one,
// and does not return then. Call it first in main, and in TestMain.
func ServeIfWorker() {
	if os.Getenv(workerVariable) == "" {
		return
	}
	// Ctrl-C reaches the whole foreground group. The parent decides what it
	// means, and this process ends with it.
	signal.Ignore(os.Interrupt)
	// The protocol owns stdout; what ONNX Runtime prints goes to stderr.
	out := os.Stdout
	os.Stdout = os.Stderr
	if err := serve(polled(os.Stdin), out); !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(in io.Reader, out io.Writer) error {
	w := newWire(in, out)
	ctx := context.Background()
	var local *Local
	sessions := map[int]Session{}
	for {
		var q request
		blobs, err := w.receive(&q)
		if err != nil {
			return err
		}
		next := w.exitWithParent()
		for _, run := range q.split() {
			var r response
			var outputs map[string]Tensor
			if outputs, blobs, err = answer(ctx, &local, sessions, run, blobs); err != nil {
				r.Error = err.Error()
			} else if q.Config != nil {
				r.Version = ort.GetVersion()
			}
			heads, data := pack(outputs, nil)
			r.Outputs = heads
			if err := w.send(r, data); err != nil {
				return err
			}
			if r.Error != "" {
				break
			}
		}
		<-next
	}
}

// exitWithParent ends this process when its parent is gone, however that ended,
// even while an evaluation goes on: the parent sends nothing before it has the
// answer, so a read waits for its next message or finds the pipe closed. The
// channel is closed when there is a message.
func (w *wire) exitWithParent() <-chan struct{} {
	next := make(chan struct{})
	go func() {
		if _, err := w.in.Peek(1); err != nil {
			os.Exit(0)
		}
		close(next)
	}()
	return next
}

// split returns a request of each run, or the request as it is.
func (q request) split() (list []request) {
	for i := range q.Runs {
		list = append(list, request{Runs: q.Runs[i : i+1]})
	}
	if list == nil {
		list = []request{q}
	}
	return list
}

// answer does what a request of at most one run asks for, and returns the blobs of the runs behind it.
func answer(ctx context.Context, local **Local, sessions map[int]Session, q request, blobs [][]byte) (outputs map[string]Tensor, rest [][]byte, err error) {
	switch {
	case q.Config != nil:
		if err := LimitMemory(q.Config.Memory); err != nil {
			return nil, nil, err
		}
		*local, err = NewLocal(*q.Config)
	case q.Load != nil:
		if len(blobs) > 0 {
			q.Load.Bytes = blobs[0]
		}
		sessions[q.ID], err = (*local).Load(ctx, *q.Load)
	case q.Close:
		err = sessions[q.ID].Close()
		delete(sessions, q.ID)
	default:
		run := q.Runs[0]
		feeds, rest, err := unpack(run.Feeds, blobs)
		if err != nil {
			return nil, nil, err
		}
		outputs, err = sessions[run.ID].Run(ctx, feeds)
		return outputs, rest, err
	}
	return nil, nil, err
}

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
