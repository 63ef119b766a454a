package onnx

import (
	"bufio"
	"io"
	"os"
	"time"
)

// meter counts what a save has written.
type meter struct {
	written, total int64
	report         func(written, total int64) error
}

func (p *meter) add(n int64) error {
	p.written += n
	if p.report == nil {
		return nil
	}
	return p.report(p.written, p.total)
}

// during runs f, which says nothing of its progress and may take long; an error
// from the report ends the wait for it.
func (p *meter) during(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			if err := p.add(0); err != nil {
				return err
			}
		}
	}
}

// step is how much is written between two reports of progress.
const step = 16 << 20

// writeTo writes the data. Large slices go from the mapped file straight to w.
func (c *chunks) writeTo(w io.Writer, progress *meter) error {
	buf := bufio.NewWriterSize(w, 1<<18)
	var since int64
	for _, part := range c.parts {
		for len(part) > 0 {
			n, err := buf.Write(part[:min(len(part), step)])
			if err != nil {
				return err
			}
			part = part[n:]
			if since += int64(n); since >= step {
				if err := progress.add(since); err != nil {
					return err
				}
				since = 0
			}
		}
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	return progress.add(since)
}

// copyFile copies all of a file, leaving the work to the system where it can.
func copyFile(to, from *os.File, progress *meter) error {
	for {
		n, err := io.CopyN(to, from, step)
		if n > 0 {
			if err := progress.add(n); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
