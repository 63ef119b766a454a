// Command measure prints what the project's speed and memory claims rest on.
//
//	go run ./cmd/dev/measure rewrite build/smollm2/optimum/model.inline.onnx [MODEL...]
//	go run ./cmd/dev/measure rewrite --with "yarn --scaling yarn:factor=2" build/sizes/llama-1b/model.onnx
//	go run ./cmd/dev/measure nodes plain=100000 softmaxes=20000 angles=50000 masks=20000 layers=1000 heads=4096
//	go run ./cmd/dev/measure texts --rows 1,8,16 --clients 16 FOLDER
//	go run ./cmd/dev/measure table [--plot build/bench.svg] build/bench.json
//	go run ./cmd/dev/measure peers [--plot build/peers.svg] build/peers.json
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

func main() {
	rewrite.ServeIfWorker()
	root := &cobra.Command{
		Use:           "measure",
		Short:         "Measure rewrites, graphs of many nodes, the op and many texts",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(rewriteCommand(), nodesCommand(), tableCommand(), textsCommand(), peersCommand())
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}
