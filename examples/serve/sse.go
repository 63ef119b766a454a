package main

import (
	"net/http"
	"time"
)

// send writes an answer, or a piece of one as an event. The status is only written here, so that an error before the
// first token still has a status of its own.
func (e *entry) send(w http.ResponseWriter, value any, stream bool) error {
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		e.started = true
		return e.write(w, append(raw(value), '\n'))
	}
	if !e.started {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("X-Accel-Buffering", "no") // nginx would hold events back
		e.started = true
	}
	return e.event(w, raw(value))
}

func (e *entry) event(w http.ResponseWriter, data []byte) error {
	return e.write(w, append(append([]byte("data: "), data...), "\n\n"...))
}

// done ends a stream that has everything.
func (e *entry) done(w http.ResponseWriter) error { return e.event(w, []byte("[DONE]")) }

func (e *entry) write(w http.ResponseWriter, b []byte) error {
	control := http.NewResponseController(w)
	control.SetWriteDeadline(time.Now().Add(e.wait)) // not every ResponseWriter can, as those of tests
	if _, err := w.Write(b); err != nil {
		return errGone
	}
	if err := control.Flush(); err != nil {
		return errGone
	}
	return nil
}
