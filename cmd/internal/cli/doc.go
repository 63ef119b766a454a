// Package cli has what the sub-commands of rope-rewrite share: the flags of every command, how
// results and errors come to the screen, exit codes, limits, and the sentences for what is
// typed by mistake.
//
// A sub-command embeds Common, reads its flags into a struct, calls one package and prints:
//
//	func (d *diffCommand) run(cmd *cobra.Command, args []string) error {
//		opts, err := d.Options()
//		…
//		progress := cli.NewProgress(cmd.ErrOrStderr())
//		defer progress.Done()
//		report, err := modeldiff.Run(cmd.Context(), args[0], args[1], …)
//		…
//		return d.Show(cmd, report, func(w *cli.Writer) { … })
//	}
//
// What a user did wrong is a Usage error; Exit gives any other error its exit code.
//
// run.go runs a command line, exit.go has the codes, screen.go writes to the terminal, mistakes.go
// and arguments.go say what to write instead, words.go and edits.go read the values of flags,
// sites.go and methodtext.go describe attention layers and methods.
package cli
