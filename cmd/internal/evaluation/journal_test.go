package evaluation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A journal that was cut off in the middle of a line goes on behind its last whole one.
func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "samples.jsonl")
	about := Plan{Tasks: []string{"passkey"}}
	j, samples, err := OpenJournal(path, about, false)
	if err != nil || len(samples) != 0 {
		t.Fatal(samples, err)
	}
	for i := range 3 {
		if err := j.Add(Sample{Variant: "a", Index: i}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b[:len(b)-5], 0o666); err != nil {
		t.Fatal(err)
	}
	j, samples, err = OpenJournal(path, about, true)
	if err != nil || len(samples) != 2 {
		t.Fatalf("%d samples, %v; want 2", len(samples), err)
	}
	if err := j.Add(Sample{Variant: "a", Index: 7}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, samples, err = OpenJournal(path, about, true)
	if err != nil || len(samples) != 3 || samples[2].Index != 7 {
		t.Fatalf("%+v, %v", samples, err)
	}
	j.Close()
	for _, c := range []struct {
		about  Plan
		resume bool
		want   string
	}{
		{about, false, "--resume"},
		{Plan{Tasks: []string{"kv"}}, true, "other models, tasks or numbers"},
	} {
		if _, _, err := OpenJournal(path, c.about, c.resume); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
