// Command generate streams text from a language model, original or patched by
// rope-rewrite, under ONNX Runtime:
//
//	go run ./examples/generate -model build/smollm2/dynamo18/model.rope.onnx -chat -prompt "Why is the sky blue?"
//
// The model's folder holds tokenizer.json and generation_config.json (or
// config.json) beside it. Text goes to stdout, figures to stderr.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/built"
	"github.com/rope-rewrite/rope-rewrite/internal/sidefile"
	"github.com/rope-rewrite/rope-rewrite/lm"
)

func main() {
	var o options
	flag.StringVar(&o.model, "model", "", "the .onnx file")
	flag.StringVar(&o.prompt, "prompt", "", "what the text starts with, or what is asked with -chat")
	flag.StringVar(&o.system, "system", "You are a helpful AI assistant named SmolLM, trained by Hugging Face", "the system's message with -chat")
	flag.BoolVar(&o.chat, "chat", false, "wrap the prompt in the ChatML form that instruction-tuned models expect")
	flag.IntVar(&o.maxTokens, "max-tokens", 64, "stop after this many tokens")
	flag.IntVar(&o.lm.Threads, "threads", 0, "threads of one operator; 0 leaves it to ONNX Runtime")
	flag.StringVar(&o.runtime, "onnxruntime", "", "libonnxruntime.so; default: "+customop.RuntimeVariable+", or the usual places")
	flag.StringVar(&o.lm.OpsLibrary, "ops-library", "", "librope_ops.so; default: "+customop.LibraryVariable+", or the usual places")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

type options struct {
	model, prompt, system, runtime string
	chat                           bool
	maxTokens                      int
	lm                             lm.Options
}

func run(ctx context.Context, o options) (err error) {
	if o.model == "" {
		return errors.New("which model? Give -model FILE.onnx, and -prompt TEXT")
	}
	if info, err := os.Stat(o.model); err != nil || info.IsDir() {
		return fmt.Errorf("there is no model %s: give the path of an .onnx file; make smollm2 fetches one", o.model)
	}
	if o.prompt == "" {
		return errors.New("give -prompt TEXT, which the text starts with")
	}
	// In the source tree the libraries are where make build leaves them.
	runtime := cmp.Or(o.runtime, built.Find(customop.RuntimeVariable))
	o.lm.OpsLibrary = cmp.Or(o.lm.OpsLibrary, built.Find(customop.LibraryVariable))
	if err := customop.InitRuntime(runtime); err != nil {
		return err
	}
	folder := filepath.Dir(o.model)
	tokenizer, err := lm.OpenTokenizer(folder)
	if err != nil {
		return err
	}
	tokens, err := prompt(tokenizer, o)
	if err != nil {
		return err
	}
	stops, err := endTokens(folder)
	if err != nil {
		return err
	}
	decoder, err := lm.OpenDecoder(o.model, o.lm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, decoder.Close()) }()
	return stream(ctx, decoder, tokenizer, tokens, stops, o.maxTokens)
}

// stream prints the continuation of tokens as it comes.
func stream(ctx context.Context, decoder *lm.Decoder, tokenizer *lm.Tokenizer, tokens []int64, stops map[int64]bool, limit int) error {
	start := time.Now()
	logits, err := decoder.Forward(tokens)
	if err != nil {
		return err
	}
	prefill := time.Since(start)
	var text lm.Stream
	start = time.Now()
	count := 0
	for ; count < limit && ctx.Err() == nil; count++ {
		next := lm.Argmax(logits.Last())
		if stops[next] {
			break
		}
		fmt.Print(text.Add(tokenizer.Decode(next)))
		if count+1 == limit {
			continue
		}
		if logits, err = decoder.Forward([]int64{next}); err != nil {
			return err
		}
	}
	fmt.Println(text.Flush())
	fmt.Fprintf(os.Stderr, "prompt: %d tokens, %.1f tokens/s; text: %d tokens, %.1f tokens/s\n",
		len(tokens), rate(len(tokens), prefill), count, rate(count, time.Since(start)))
	return nil
}

func rate(tokens int, d time.Duration) float64 { return float64(tokens) / d.Seconds() }

// prompt gives the tokens that the text starts with.
func prompt(tokenizer *lm.Tokenizer, o options) ([]int64, error) {
	if !o.chat {
		return tokenizer.Encode(o.prompt)
	}
	if _, ok := tokenizer.Special("<|im_start|>"); !ok {
		return nil, errors.New("-chat writes ChatML, but this model's tokenizer has no token <|im_start|>; write the model's own form into -prompt instead")
	}
	message := func(role, text string) string { return "<|im_start|>" + role + "\n" + text + "<|im_end|>\n" }
	return tokenizer.Encode(message("system", o.system) + message("user", o.prompt) + "<|im_start|>assistant\n")
}

// endTokens reads which tokens end a text: a number or a list, in
// generation_config.json or else config.json.
func endTokens(folder string) (map[int64]bool, error) {
	stops := map[int64]bool{}
	for _, name := range []string{"generation_config.json", "config.json"} {
		b, err := sidefile.Read(filepath.Join(folder, name), sidefile.Config)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var config struct {
			End json.RawMessage `json:"eos_token_id"`
		}
		if err := json.Unmarshal(b, &config); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(folder, name), err)
		}
		var one int64
		var many []int64
		switch {
		case len(config.End) == 0 || string(config.End) == "null":
			continue
		case json.Unmarshal(config.End, &one) == nil:
			many = []int64{one}
		case json.Unmarshal(config.End, &many) != nil:
			return nil, fmt.Errorf("%s: eos_token_id %s is neither a number nor a list of numbers", filepath.Join(folder, name), config.End)
		}
		for _, id := range many {
			stops[id] = true
		}
		return stops, nil
	}
	return stops, nil // without any, only -max-tokens ends a text
}
