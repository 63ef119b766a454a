package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/lm"
)

// capacity of the cache in tests of load; one letter is one token.
const capacity = 128

// soak is for make serve-soak.
var soak = flag.Duration("soak", 0, "how long TestLoad goes on; it asks twice 1,280 times at least")

// ask sends a request of random length, some of them far too long, leaves some answers early, and says what is wrong with an answer.
func ask(c *http.Client, url string, rng *rand.Rand) (status int, wrong error) {
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	prompt, stream := strings.Repeat("a", 1+rng.IntN(capacity+capacity/8)), rng.IntN(2) == 0
	if rng.IntN(16) == 0 {
		prompt = strings.Repeat("a", 60_000)
	}
	leaves := rng.IntN(4) == 0
	if leaves {
		time.AfterFunc(time.Duration(rng.IntN(100))*time.Millisecond, leave)
	}
	body, err := json.Marshal(map[string]any{"prompt": prompt, "max_tokens": 1 + rng.IntN(40), "n": 1 + rng.IntN(2), "stream": stream})
	if err != nil {
		return 0, err
	}
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, url+atComplete, strings.NewReader(string(body)))
	answer, err := c.Do(r)
	if err != nil {
		if leaves {
			err = nil
		}
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil && leaves {
		return 0, nil
	}
	status = answer.StatusCode
	long := len(prompt) > capacity
	switch {
	case err != nil:
		return status, err
	case long && status == 400, !long && status == 429:
		return status, nil
	case !long && status == 200 && stream && strings.HasSuffix(string(text), "data: [DONE]\n\n"):
		return status, nil
	case !long && status == 200 && !stream && json.Valid(text):
		return status, nil
	}
	return status, fmt.Errorf("a prompt of %d tokens: status %d: an answer that ends with %s", len(prompt), status, text[max(0, len(text)-300):])
}

// load has 64 clients send 20 requests each, others in each round.
func load(t *testing.T, url string, round int) map[int]int {
	var (
		all      sync.WaitGroup
		mu       sync.Mutex
		statuses = map[int]int{}
	)
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer c.CloseIdleConnections()
	for i := range 64 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(round), uint64(i)))
			for range 20 {
				status, err := ask(c, url, rng)
				if err != nil {
					t.Errorf("client %d: %v", i, err)
				}
				if status == 429 {
					time.Sleep(50 * time.Millisecond)
				}
				mu.Lock()
				statuses[status]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return statuses
}

// held is what a server that does nothing holds: goroutines, and bytes of Go's heap and of the process.
func held(t *testing.T, m *lm.Model, most int) (goroutines, heap, process int) {
	for range 1000 { // a connection ends a moment after its client
		if l := m.Load(); runtime.NumGoroutine() <= most && l.Running+l.Waiting == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if b, err := os.ReadFile("/proc/self/statm"); err == nil { // elsewhere it stays 0
		var size, pages int
		if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
			t.Fatal(err)
		}
		process = pages * os.Getpagesize()
	}
	return runtime.NumGoroutine(), int(stats.HeapAlloc), process
}

// Under more load than there is room for, each request is answered or refused with the right status. A second time as
// much, and as often again as -soak says, leaves nothing behind.
func TestLoad(t *testing.T) {
	testsample.All(t, "2,560 requests of 64 clients")
	s, _ := newTestServer(t, modelFolder(t, "", capacity), lm.Options{Rows: 8, Queue: 48, Context: capacity}, usualLimits)
	s.log = slog.New(slog.DiscardHandler) // lines that a test keeps would count as memory
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	idle := runtime.NumGoroutine() + 3 // two of the server, and the clock of the tokenizer's regular expressions
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx, listener, time.Minute) }()
	url := "http://" + listener.Addr().String()

	statuses := load(t, url, 1)
	_, heap, process := held(t, s.model, idle)
	var goroutines, heapThen, processThen int
	begun, told := time.Now(), time.Time{}
	for round := 2; round == 2 || time.Since(begun) < *soak; round++ {
		for status, n := range load(t, url, round) {
			statuses[status] += n
		}
		goroutines, heapThen, processThen = held(t, s.model, idle)
		if time.Since(told) > time.Minute {
			told = time.Now()
			t.Logf("%d rounds: %d goroutines of %d; heap %d KiB, then %d KiB; process %d MiB, then %d MiB",
				round, goroutines, idle, heap>>10, heapThen>>10, process>>20, processThen>>20)
		}
	}
	t.Logf("statuses %v in %v; %d goroutines; heap %d KiB; process %d MiB", statuses, time.Since(begun).Round(time.Second), goroutines, heapThen>>10, processThen>>20)
	for _, status := range []int{200, 400, 429} {
		if statuses[status] == 0 {
			t.Errorf("no request got status %d", status)
		}
	}
	if goroutines > idle {
		stacks := make([]byte, 1<<16)
		t.Errorf("%d goroutines, more than %d:\n%s", goroutines, idle, stacks[:runtime.Stack(stacks, true)])
	}
	if grown := heapThen - heap; grown > 1280<<10 {
		t.Errorf("the heap grew by %d KiB", grown>>10)
	}
	switch grown := processThen - process; {
	case underRace():
		t.Log("the growth of the process is not judged: the race detector keeps a record of its own")
	case grown > 64<<20:
		t.Errorf("the process grew by %d MiB", grown>>20)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// underRace reports whether the race detector is built in.
func underRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
