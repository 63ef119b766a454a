//go:build linux

package engine

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
)

// A worker ends with its parent, though that is killed and the worker computes.
func TestWorkerEndsWithItsParent(t *testing.T) {
	testruntime.Require(t)
	model := t.TempDir() + "/endless.onnx"
	if err := os.WriteFile(model, endless(t).Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), parentVariable+"="+model)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	worker, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	// It computes once it has used processor time that loading a model does not take.
	for begun := ticks(worker); ticks(worker) < begun+50; {
		if !runs(worker) {
			t.Fatal("the worker ended by itself")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	command.Wait()
	for deadline := time.Now().Add(time.Minute); runs(worker); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			syscall.Kill(worker, syscall.SIGKILL)
			t.Fatal("the worker outlives its parent")
		}
	}
}

// stat returns the fields of a process's state from the third on; nil when it is gone.
func stat(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// runs says whether a process is there and no zombie.
func runs(pid int) bool {
	s := stat(pid)
	return s != nil && s[0] != "Z"
}

// ticks is the processor time of a process, in hundredths of a second.
func ticks(pid int) int {
	s := stat(pid)
	if s == nil {
		return 0
	}
	user, _ := strconv.Atoi(s[11])
	return user
}
