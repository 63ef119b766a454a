package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// memory is resident memory in bytes, at the moment when that beyond the
// model's mapped file was largest.
type memory struct {
	Over   int64 // all but the model's mapping
	Own    int64 // of Over: anonymous memory
	Files  int64 // of Over: programs and libraries
	Mapped int64 // of the model's file
}

// watch looks at a process and its children until it is stopped.
type watch struct {
	end  chan struct{}
	done chan memory
}

func startWatch(pid int, model string) *watch {
	w := &watch{end: make(chan struct{}), done: make(chan memory)}
	model, _ = filepath.Abs(model)
	if real, err := filepath.EvalSymlinks(model); err == nil {
		model = real
	}
	go func() {
		var largest memory
		for {
			if m := resident(pid, model); m.Over > largest.Over {
				largest = m
			}
			select {
			case <-w.end:
				w.done <- largest
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return w
}

func (w *watch) stop() memory {
	close(w.end)
	return <-w.done
}

// resident adds up a process and its children. What ends meanwhile counts as nothing.
func resident(pid int, model string) (m memory) {
	pids := []int{pid}
	for i := 0; i < len(pids); i++ {
		children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pids[i]))
		for _, file := range children {
			b, _ := os.ReadFile(file)
			for _, word := range strings.Fields(string(b)) {
				if child, err := strconv.Atoi(word); err == nil {
					pids = append(pids, child)
				}
			}
		}
	}
	files := map[string]int64{}
	for _, pid := range pids {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
		m.add(b, model, files)
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
func (m *memory) add(smaps []byte, model string, files map[string]int64) {
	var file, place string
	var rss int64
	lines := bufio.NewScanner(bytes.NewReader(smaps))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) >= 5 && strings.Contains(words[0], "-") {
			file, place = "", strings.Join(words[1:], " ")
			if len(words) > 5 {
				file = words[5]
			}
			continue
		}
		if len(words) != 3 || words[2] != "kB" {
			continue
		}
		kilobytes, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil {
			continue
		}
		switch size := kilobytes << 10; {
		case file == model && words[0] == "Rss:":
			m.Mapped += size
		case file == model:
		case words[0] == "Rss:":
			rss = size
		case words[0] == "Anonymous:":
			m.Own += size
			files[place] = max(files[place], rss-size)
		}
	}
}

// dropFromMemory lets the system forget the contents of a file.
func dropFromMemory(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
}
