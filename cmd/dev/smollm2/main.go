package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p := pipeline{
		fetch: newFetcher(),
		check: settings{tokens: 64, length: 2048, work: "build/smollm2", texts: "testdata/smollm2"},
	}
	root := &cobra.Command{
		Use:           "smollm2",
		Short:         "Fetch SmolLM2-135M-Instruct, rewrite it, and check the result against the original and transformers",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(command *cobra.Command, _ []string) error { return p.run(command.Context(), command) },
	}
	root.Flags().StringSliceVar(&p.variants, "variant", []string{"optimum"}, "exports to use, with commas between")
	root.Flags().BoolVar(&p.targets, "targets", false, "also compare what --target onnx and --target contrib write")
	root.Flags().StringVar(&p.rewriter, "rope-rewrite", "build/rope-rewrite", "the program under test")
	root.AddCommand(fetchCommand(), checkCommand(), decodeCommand(), promptCommand(), goldenCommand(), probeCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "smollm2:", err)
		os.Exit(1)
	}
}
