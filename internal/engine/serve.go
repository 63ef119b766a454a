package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	ort "github.com/yalue/onnxruntime_go"
)

// workerVariable holds, in a child's environment, that it is a worker.
const workerVariable = "ROPE_REWRITE_WORKER"

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
		for n := range max(len(q.Runs), 1) {
			var r response
			var outputs map[string]Tensor
			if outputs, blobs, err = answer(ctx, &local, sessions, q, n, blobs); err != nil {
				r.Error = err.Error()
			} else if q.Config != nil {
				r.Version = ort.GetVersion()
			}
			var data [][]byte
			r.Outputs, data = pack(outputs, nil)
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

// answer does what a request asks for, of several runs the n-th, and returns the blobs of the runs behind it.
func answer(ctx context.Context, local **Local, sessions map[int]Session, q request, n int, blobs [][]byte) (outputs map[string]Tensor, rest [][]byte, err error) {
	switch {
	case q.Config != nil:
		if !onGPU(q.Config.Provider) {
			if err := LimitMemory(q.Config.Memory); err != nil {
				return nil, nil, err
			}
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
		run := q.Runs[n]
		feeds, rest, err := unpack(run.Feeds, blobs)
		if err != nil {
			return nil, nil, err
		}
		outputs, err = sessions[run.ID].Run(ctx, feeds)
		return outputs, rest, err
	}
	return nil, nil, err
}
