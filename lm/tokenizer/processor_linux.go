package tokenizer

import (
	"syscall"
	"time"
)

// processorTime is what this thread has used of a processor so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_THREAD, &u) != nil {
		return 0 // it knows no other threads than this: cannot fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
