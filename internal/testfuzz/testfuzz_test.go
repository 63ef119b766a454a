package testfuzz

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asked makes FuzzAsked fail at what the variable says.
const asked = "TESTFUZZ_ASKED"

// FuzzAsked fails when it is asked to, and else does nothing.
func FuzzAsked(f *testing.F) {
	Run(f, []string{`{"key": 12}`}, 100, func(t testing.TB, input []byte) bool {
		if what := os.Getenv(asked); what != "" && !bytes.Contains(input, []byte("key")) {
			if what == "panic" {
				panic("no key")
			}
			t.Errorf("no key")
		}
		return true
	})
}

func TestFailuresAreKept(t *testing.T) {
	for _, how := range []string{"error", "panic"} {
		command := exec.Command(os.Args[0], "-test.run=^FuzzAsked$")
		command.Dir, command.Env = t.TempDir(), append(os.Environ(), asked+"="+how)
		out, err := command.CombinedOutput()
		kept, _ := filepath.Glob(filepath.Join(command.Dir, "testdata", "fuzz", "FuzzAsked", "*"))
		if err == nil || !strings.Contains(string(out), "no key") || len(kept) != 1 {
			t.Fatalf("%s: %v, kept %q:\n%s", how, err, kept, out)
		}
		command = exec.Command(os.Args[0], "-test.run=^FuzzAsked/"+filepath.Base(kept[0])+"$")
		command.Dir, command.Env = filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(kept[0])))), append(os.Environ(), asked+"="+how, timesVariable+"=0")
		if out, err := command.CombinedOutput(); err == nil || !strings.Contains(string(out), "no key") {
			t.Errorf("%s: what was kept does not fail again (%v):\n%s", how, err, out)
		}
	}
}

// Two runs draw the same, another seed draws something else, and what is drawn differs from the seeds.
func TestDrawn(t *testing.T) {
	seeds := []string{`{"rope_theta": 10000}`, ""}
	draw := func(seed int) []byte {
		d := newDrawer(seeds, seed)
		var all []byte
		changed := 0
		for range 500 {
			input := d.draw()
			if string(input) != seeds[0] && string(input) != seeds[1] {
				changed++
			}
			all = append(all, input...)
		}
		if changed < 400 {
			t.Errorf("of 500 inputs %d are changed", changed)
		}
		return all
	}
	first := draw(0)
	if !bytes.Equal(first, draw(0)) {
		t.Error("another run draws something else")
	}
	if bytes.Equal(first, draw(1)) {
		t.Error("another seed draws the same")
	}
}
