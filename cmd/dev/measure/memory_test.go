package main

import "testing"

// Two processes map the same program; one maps the model as well.
func TestMemoryAdd(t *testing.T) {
	const program = `55d0-55d1 r-xp 00001000 08:01 42 /usr/bin/program
Size:    100 kB
Rss:      40 kB
Anonymous: 4 kB
`
	const heap = `7f00-7f01 rw-p 00000000 00:00 0
Rss:      64 kB
Anonymous: 64 kB
`
	const model = `7f10-7f11 r--p 00000000 08:01 43 /models/model.onnx
Rss:      1000 kB
Anonymous: 0 kB
`
	var m memory
	files := map[string]int64{}
	m.add(program+heap+model, "/models/model.onnx", files)
	m.add(program+heap, "/models/model.onnx", files)
	if m.Own != 136<<10 || len(files) != 2 || files["r-xp 00001000 08:01 42 /usr/bin/program"] != 36<<10 {
		t.Errorf("%+v, %v", m, files)
	}
}
