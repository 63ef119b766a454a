package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// Limits are the flags that stop a command that takes too much.
type Limits struct {
	seconds float64
	memory  string
}

// leastMemory is what ONNX Runtime and the smallest model take.
const leastMemory = 512 << 20

// Flags adds them to a command.
func (l *Limits) Flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Float64Var(&l.seconds, "max-seconds", 0, "stop and write nothing after `SECONDS`")
	f.StringVar(&l.memory, "max-memory", "", "stop and write nothing when this program, or its child process that runs models, needs more than `SIZE` of memory in addition to the model's file (e.g. 800MB or 4GB)")
}

// bytes returns what --max-memory says, 0 when it is not given.
func (l *Limits) bytes() (uint64, error) {
	if l.memory == "" {
		return 0, nil
	}
	size, err := ParseSize(l.memory)
	if err != nil {
		return 0, Usage("--max-memory %w", err)
	}
	if size < leastMemory {
		return 0, Usage("--max-memory %s: expected at least %dMB, because ONNX Runtime and a small model need some", l.memory, leastMemory>>20)
	}
	return uint64(size), nil
}

// ParseSize reads a number of bytes such as 800MB or 4GB.
func ParseSize(text string) (float64, error) {
	number, unit := text, ""
	if len(number) > 2 {
		number, unit = text[:len(text)-2], strings.ToUpper(text[len(text)-2:])
	}
	scale := map[string]float64{"MB": 1 << 20, "GB": 1 << 30}[unit]
	size, err := strconv.ParseFloat(number, 64)
	if size *= scale; err != nil || scale == 0 || !(size > 0 && size < 1<<50) {
		return 0, fmt.Errorf("%q: expected a size such as 800MB or 4GB", short.Name(text))
	}
	return size, nil
}

// Within runs work under the limits, and says which one ended it.
func (l *Limits) Within(cmd *cobra.Command, opts *rewrite.Options, work func(context.Context) error) (err error) {
	if opts.Evaluation.Memory, err = l.bytes(); err != nil {
		return err
	}
	ctx := cmd.Context()
	if cmd.Flags().Changed("max-seconds") {
		if !(l.seconds > 0 && l.seconds < math.MaxInt64/1e9) {
			return Usage("--max-seconds %g: expected a number above 0", l.seconds)
		}
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Duration(l.seconds*1e9))
		defer stop()
	}
	err = work(ctx)
	switch {
	case errors.Is(err, rewrite.ErrMemory):
		return fmt.Errorf("--max-memory %s is not enough, so nothing was written; give more", l.memory)
	case err != nil && ctx.Err() != nil && cmd.Context().Err() == nil:
		return fmt.Errorf("--max-seconds %g is not enough, so nothing was written; give more", l.seconds)
	}
	return err
}
