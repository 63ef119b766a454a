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
	root := &cobra.Command{
		Use:           "smollm2",
		Short:         "Real exports of SmolLM2-135M-Instruct, and what a rewrite does to them",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(fetchCommand(), checkCommand(), goldenCommand(), probeCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "smollm2:", err)
		os.Exit(1)
	}
}
