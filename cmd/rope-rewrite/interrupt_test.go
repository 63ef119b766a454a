//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
)

// SIGTERM and Ctrl-C end what does not react to them.
func TestInterruptEndsWhatDoesNotReact(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		command := exec.Command("stubborn")
		command.Stderr = new(strings.Builder)
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if err := command.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		never := time.AfterFunc(time.Minute, func() { command.Process.Kill() })
		err = command.Wait()
		never.Stop()
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != cli.ExitInterrupted {
			t.Errorf("%v: %v, exit code %d was expected", signal, err, cli.ExitInterrupted)
		}
		if said := fmt.Sprint(command.Stderr); said != "rope-rewrite: interrupted\n" {
			t.Errorf("%v: said %q", signal, said)
		}
	}
}

// The process that bench starts for a model ends when bench is gone.
func TestProbeEndsWithItsParent(t *testing.T) {
	onnxruntime, library := testruntime.Paths(t)
	model := filepath.Join("..", "..", "testdata", "models", "llama__optimum", "model.onnx")
	command := exec.Command("rope-rewrite", "bench-probe", model, "--length=8", "--tokens=1000000000",
		"--onnxruntime="+onnxruntime, "--ops-library="+library)
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	never := time.AfterFunc(time.Minute, func() { command.Process.Kill() })
	err = command.Wait()
	never.Stop()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != cli.ExitFailed {
		t.Errorf("%v, exit code %d was expected", err, cli.ExitFailed)
	}
}
