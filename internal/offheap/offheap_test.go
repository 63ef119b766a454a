package offheap_test

import (
	"runtime"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/offheap"
)

// The memory is zeros, can be written, and is not counted.
func TestMake(t *testing.T) {
	const size = 64 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	memory, err := offheap.Make(size)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > size/2 && runtime.GOOS != "windows" {
		t.Errorf("the heap has %d MB more", grown>>20)
	}
	if len(memory) != size || memory[0] != 0 || memory[size-1] != 0 {
		t.Errorf("%d bytes, the first is %d and the last %d", len(memory), memory[0], memory[size-1])
	}
	memory[size-1] = 1
	if err := offheap.Free(memory); err != nil {
		t.Error(err)
	}
	if nothing, err := offheap.Make(0); err != nil || len(nothing) != 0 || offheap.Free(nothing) != nil {
		t.Errorf("nothing: %v, %v", nothing, err)
	}
	if _, err := offheap.Make(1 << 62); err == nil {
		t.Error("more memory than there is was given")
	}
}
