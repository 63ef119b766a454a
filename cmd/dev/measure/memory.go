package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// run is what a command took, its children included.
type run struct {
	Seconds, CPU float64 // by the clock, and of processors
	Memory       memory
}

// watched runs a command and returns what it took. The error has what it printed.
func watched(command *exec.Cmd, model string) (r run, err error) {
	var printed bytes.Buffer
	command.Stdout, command.Stderr = &printed, &printed
	start := time.Now()
	if err := command.Start(); err != nil {
		return r, err
	}
	memory := watch(command.Process.Pid, model)
	err = command.Wait()
	r.Seconds = time.Since(start).Seconds()
	r.Memory = memory()
	r.CPU = (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds()
	if err != nil {
		return r, fmt.Errorf("%w\n%s", err, &printed)
	}
	return r, nil
}

// memory is resident memory in bytes beyond the model's mapped file, at the
// moment when it was largest.
type memory struct {
	Over  int64
	Own   int64 // of Over: anonymous memory
	Files int64 // of Over: programs and libraries
}

// watch looks at a process and its children until what it returns is called.
func watch(pid int, model string) (stop func() memory) {
	end, done := make(chan struct{}), make(chan memory)
	if real, err := filepath.EvalSymlinks(model); err == nil {
		model = real
	}
	model, _ = filepath.Abs(model)
	go func() {
		var largest memory
		for {
			if m := resident(pid, model); m.Over > largest.Over {
				largest = m
			}
			select {
			case <-end:
				done <- largest
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() memory {
		close(end)
		return <-done
	}
}

// resident adds up a process and its children. What ends meanwhile counts as nothing.
func resident(pid int, model string) (m memory) {
	pids, files := []string{strconv.Itoa(pid)}, map[string]int64{}
	for i := 0; i < len(pids); i++ {
		children, _ := filepath.Glob(fmt.Sprintf("/proc/%s/task/*/children", pids[i]))
		for _, file := range children {
			b, _ := os.ReadFile(file)
			pids = append(pids, strings.Fields(string(b))...)
		}
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%s/smaps", pids[i]))
		m.add(string(b), model, files)
	}
	for _, size := range files {
		m.Files += size
	}
	m.Over = m.Own + m.Files
	return m
}

// add reads one smaps: each mapping has a line of its addresses, offset and
// file, and then lines of figures in kB, Rss and Anonymous among them. Pages
// of one place of a file that several processes map stand in memory once.
func (m *memory) add(smaps, model string, files map[string]int64) {
	var place string
	var rss int64
	for line := range strings.Lines(smaps) {
		words := strings.Fields(line)
		if len(words) >= 5 && strings.Contains(words[0], "-") {
			place = strings.Join(words[1:], " ")
			continue
		}
		if len(words) != 3 || strings.HasSuffix(place, " "+model) {
			continue
		}
		kilobytes, _ := strconv.ParseInt(words[1], 10, 64)
		switch size := kilobytes << 10; words[0] {
		case "Rss:":
			rss = size
		case "Anonymous:":
			m.Own += size
			files[place] = max(files[place], rss-size)
		}
	}
}
