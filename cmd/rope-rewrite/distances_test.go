package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
)

// TestMemoryOfDistances: a model with ALiBi's slopes reads 32,768 tokens in one call in memory that grows with the
// number of tokens. Its own attention would need 17 GB for the scores alone.
func TestMemoryOfDistances(t *testing.T) {
	onnxruntime, library := testruntime.Paths(t)
	patched := filepath.Join(t.TempDir(), "model.onnx")
	run := func(args ...string) []byte {
		t.Helper()
		command := exec.Command("rope-rewrite", append(args, "--onnxruntime="+onnxruntime, "--ops-library="+library)...)
		if _, err := command.StdinPipe(); err != nil { // a probe ends with it
			t.Fatal(err)
		}
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return out
	}
	run("../../testdata/models/bloom__dynamo18/model.onnx", "-o", patched)
	peak := map[int]int64{}
	for _, length := range []int{8192, 32768} {
		var of timing
		if err := json.Unmarshal(run("bench-probe", patched, fmt.Sprintf("--length=%d", length), "--tokens=2", "--threads=1"), &of); err != nil {
			t.Fatal(err)
		}
		peak[length] = of.Peak
		t.Logf("%d tokens: %d MB, %.2f s", length, of.Peak>>20, of.FirstToken)
	}
	if peak[8192] == 0 {
		t.Skip("this system does not tell how much memory a process had")
	}
	if peak[32768] > 4*peak[8192] || peak[32768] > 1<<30 {
		t.Errorf("32768 tokens need %d MB, 8192 tokens %d MB", peak[32768]>>20, peak[8192]>>20)
	}
}
