package lm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/lm/chat"
)

// As many texts are read at the same time as there are rows. Who waits leaves with the context, and a text that is too long by its bytes is
// refused before it is read.
func TestReading(t *testing.T) {
	dir := t.TempDir()
	for from, to := range map[string]string{
		"models/llama__optimum/model.onnx": "model.onnx", "models/llama__optimum/config.json": "config.json", "lm/tokenizer.json": "tokenizer.json",
	} {
		b, err := os.ReadFile(filepath.Join("..", "testdata", from))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte("{{ messages[0].content }}"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(dir, Options{Rows: 2, Context: 100, Threads: 1, OpsLibrary: testruntime.Require(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	text := strings.Repeat("a", 1<<20)
	talk, err := m.NewConversation(chat.Message{Role: "user", Content: text})
	if err != nil {
		t.Fatal(err)
	}
	defer talk.Close()
	reply := func(ctx context.Context) error {
		for _, err := range talk.Reply(ctx, GenerateOptions{}) {
			return err
		}
		return nil
	}
	for name, ask := range map[string]func(context.Context) error{
		"text": func(ctx context.Context) error { _, err := m.Tokens(ctx, Input{Text: text}); return err },
		"messages": func(ctx context.Context) error {
			_, err := m.Tokens(ctx, Input{Messages: []chat.Message{{Role: "user", Content: text}}})
			return err
		},
		"conversation": reply,
	} {
		var long *ContextError
		if err := ask(t.Context()); !errors.As(err, &long) || !long.AtLeast || long.Tokens < 1<<20/5 || !strings.Contains(err.Error(), "at least") {
			t.Errorf("%s: %v", name, err)
		}
		for range 2 {
			m.reading <- struct{}{} // two others are read
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- ask(ctx) }()
		select {
		case err := <-ended:
			t.Errorf("%s: a third text is read: %v", name, err)
		case <-time.After(50 * time.Millisecond): // to see it end, if it does
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: a third text: %v", name, err)
			}
		}
		stop()
		for range 2 {
			<-m.reading
		}
	}
	var long *ContextError
	if _, err := m.Tokens(t.Context(), Input{Text: "a b"}); err != nil {
		t.Error(err)
	}
	for _, err := range m.Generate(t.Context(), Input{Text: text[:101]}, GenerateOptions{}) {
		if !errors.As(err, &long) || long.AtLeast || long.Tokens != 101 {
			t.Errorf("%v", err)
		}
	}
}
