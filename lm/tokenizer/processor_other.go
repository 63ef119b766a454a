//go:build !linux

package tokenizer

import "time"

var begun = time.Now()

// processorTime is the clock's where the system tells no thread's time without a library of its own.
func processorTime() time.Duration { return time.Since(begun) }
