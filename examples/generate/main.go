// Command generate streams text from a language model, original or patched by
// rope-rewrite, under ONNX Runtime:
//
//	go run ./examples/generate -model build/smollm2/dynamo18/model.rope.onnx -chat -prompt "Why is the sky blue?"
//
// The model's folder holds tokenizer.json and generation_config.json (or
// config.json) beside it. Text goes to stdout, figures and why the text ended to stderr. ONNX Runtime and the op
// library are looked for in the usual places; in a checkout, eval "$(make -s env)" names those that make build left.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/chat"
	"github.com/rope-rewrite/rope-rewrite/lm/sample"
)

func main() {
	var o options
	flag.StringVar(&o.model, "model", "", "the .onnx file, or its folder")
	flag.StringVar(&o.prompt, "prompt", "", "what the text starts with, or what is asked with -chat")
	flag.StringVar(&o.system, "system", "", "the system's message with -chat; models may have one of their own")
	flag.BoolVar(&o.chat, "chat", false, "the prompt is a user's message, in the form of the model's chat template")
	flag.BoolVar(&o.ids, "ids", false, "print the tokens' ids instead of their text")
	flag.IntVar(&o.maxTokens, "max-tokens", 64, "stop after this many tokens")
	flag.Float64Var(&o.sample.Temperature, "temperature", 0, "temperature of the draw; 0 takes the most likely token each time")
	flag.Float64Var(&o.sample.TopP, "top-p", 0, "draw from the fewest tokens that together have this probability; 0 means all tokens")
	flag.Uint64Var(&o.sample.Seed, "seed", 0, "the same seed draws the same text; 0 chooses a random seed")
	flag.IntVar(&o.lm.Threads, "threads", 0, "threads for one operator; 0 means ONNX Runtime's default")
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
	chat, ids                      bool
	maxTokens                      int
	sample                         sample.Options
	lm                             lm.Options
}

func run(ctx context.Context, o options) (err error) {
	if o.model == "" {
		return errors.New("no model is given; give -model FILE.onnx and -prompt TEXT")
	}
	if _, err := os.Stat(o.model); err != nil {
		return fmt.Errorf("there is no model %s: give the path of an .onnx file; make smollm2 fetches one", o.model)
	}
	if o.prompt == "" {
		return errors.New("give -prompt TEXT, which the text starts with")
	}
	if err := customop.InitRuntime(o.runtime); err != nil {
		return err
	}
	model, err := lm.Open(o.model, o.lm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	return stream(ctx, model, o)
}

// stream prints the continuation of a text as it comes.
func stream(ctx context.Context, model *lm.Model, o options) error {
	tokens, err := model.Tokens(ctx, o.input())
	if err != nil {
		return err
	}
	start, count := time.Now(), 0
	var prefill time.Duration
	ended := "interrupted"
	for token, err := range model.Generate(ctx, lm.Input{Tokens: tokens}, lm.GenerateOptions{MaxTokens: o.maxTokens, Sample: &o.sample}) {
		if ctx.Err() != nil {
			break // the text so far is what was wanted
		}
		if err != nil {
			return err
		}
		if count == 0 {
			prefill = time.Since(start)
		}
		if o.ids {
			fmt.Print(token.ID, " ")
		} else {
			fmt.Print(token.Text)
		}
		count++
		switch token.Finish {
		case lm.FinishStop:
			ended = "the model ended it"
		case lm.FinishLength:
			ended = "as many tokens as -max-tokens allows"
			if n := model.ContextLength(); n > 0 && len(tokens)+count > n {
				ended = fmt.Sprintf("the model's context of %d tokens is full", n)
			}
		}
	}
	fmt.Println()
	fmt.Fprintln(os.Stderr, "the text ended:", ended)
	fmt.Fprintf(os.Stderr, "prompt: %d tokens, %.1f tokens/s; text: %d tokens, %.1f tokens/s\n",
		len(tokens), rate(len(tokens), prefill), count, rate(count-1, time.Since(start)-prefill))
	return nil
}

func rate(tokens int, d time.Duration) float64 { return float64(max(0, tokens)) / d.Seconds() }

// input is what the text starts with.
func (o options) input() lm.Input {
	if !o.chat {
		return lm.Input{Text: o.prompt}
	}
	var messages []chat.Message
	if o.system != "" {
		messages = append(messages, chat.Message{Role: "system", Content: o.system})
	}
	return lm.Input{Messages: append(messages, chat.Message{Role: "user", Content: o.prompt})}
}
