package engine

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// polled returns a pipe that Go's runtime polls, as it does with those that it opens
// itself: a read that waits then takes no thread, of which the change to and from costs
// more than most evaluations of a piece. Where the system refuses, f is read as it is.
func polled(f *os.File) *os.File {
	fd := int(f.Fd())
	if err := unix.SetNonblock(fd, true); err != nil {
		return f
	}
	return os.NewFile(uintptr(fd), f.Name())
}

// widen lets a pipe hold a megabyte. Of a tensor that is larger than the 64 KB of a new
// pipe, both processes would wait for each other after every part. Where the system
// refuses, the pipe is unchanged.
func widen(pipe io.Closer) {
	f, ok := pipe.(*os.File)
	if !ok {
		return
	}
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) })
	}
}
