// Command rope-rewrite gives exported ONNX models longer and better context.
//
//	rope-rewrite MODEL.onnx [-o OUT.onnx] [--scaling SPEC] [--mask SPEC] ...
//	rope-rewrite inspect MODEL.onnx
//	rope-rewrite validate ORIGINAL.onnx PATCHED.onnx
//	rope-rewrite ops path|version
//	rope-rewrite doctor
//
// It finds the rotary attention layers of an exported model, verifies for each
// that the fused op of this project computes the same, replaces it, and then
// applies the methods that were asked for. Exit codes: 0 done, 1 failed,
// 2 wrong usage, 3 some attention layers could not be rewritten, 4 no rotary
// attention in the model, 5 audit or diff found a difference, 6 validate could
// not tell whether a model has its methods, 8 its file is not confirmed; 130 after an interrupt.
package main

import (
	"context"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

func main() {
	rewrite.ServeIfWorker()
	debug.SetGCPercent(50) // measurements are large and short-lived; 25 saves little more and takes a second
	// Half of a small heap is little: collecting it took a third of the processor time of a small model.
	// This block counts as heap and takes no memory, because nothing touches it.
	unused := make([]byte, 32<<20)
	defer runtime.KeepAlive(unused)
	os.Exit(cli.Interruptible(func(ctx context.Context) int { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) }))
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return cli.Execute(ctx, newRoot(), args, stdout, stderr)
}
