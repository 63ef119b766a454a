package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rope-rewrite/rope-rewrite/audit"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/modelfolder"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/recommend"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/schema"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

//go:generate go run . schemas ../../docs/schemas

// newSchemas writes the JSON Schema of each command's --json.
func newSchemas(c *cli.Common) *cobra.Command {
	return &cobra.Command{
		Use:    "schemas DIR",
		Short:  "Write the JSON Schema of each command's --json into a folder",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := schemas(c, cmd.Root())
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(args[0], name), text, 0o666); err != nil {
					return err
				}
			}
			return err
		},
	}
}

// schemas are the schemas of all commands, by file.
func schemas(c *cli.Common, root *cobra.Command) (map[string][]byte, error) {
	files := map[string][]byte{}
	var add func(*cobra.Command) error
	add = func(cmd *cobra.Command) (err error) {
		if types := c.Printed(cmd); types != nil {
			files[schemaOf(cmd)], err = schema.Of("What "+cmd.CommandPath()+" --json prints", types, enumerated)
		}
		for _, sub := range cmd.Commands() {
			err = errors.Join(err, add(sub))
		}
		return err
	}
	err := add(root)
	return files, err
}

// schemaOf is the file of a command's schema.
func schemaOf(cmd *cobra.Command) string {
	name := "rewrite"
	if cmd.HasParent() {
		name = strings.Join(strings.Fields(cmd.CommandPath())[1:], "-")
	}
	return name + ".schema.json"
}

// enumerated are the values of texts that programs may decide by.
var enumerated = schema.Constraints{
	reflect.TypeFor[rewrite.Status](): oneOf(rewrite.Rewritten, rewrite.Rotation, rewrite.Unchanged),
	reflect.TypeFor[rewrite.Kind](): oneOf(rewrite.NotDelimited, rewrite.SharesCache, rewrite.NotMeasured, rewrite.NotVerified,
		rewrite.NotRotary, rewrite.NotAskedFor, rewrite.CrossAlone, rewrite.PaddingRead, rewrite.ReadOutside, rewrite.LeftBefore),
	reflect.TypeFor[rewrite.Form](): oneOf(rewrite.OwnNodes, rewrite.Inlined, rewrite.GroupQuery, rewrite.Rotary),
	reflect.TypeFor[validate.Verdict](): oneOf(validate.Same, validate.SameOutputs, validate.Different, validate.AsClaimed,
		validate.NotAsClaimed, validate.NotConfirmed, validate.NotShown),
	reflect.TypeFor[audit.Verdict](): oneOf(audit.Agrees, audit.Differs, audit.NotClaimed, audit.NotMeasured),
	reflect.TypeFor[modelfolder.What](): oneOf(modelfolder.Rewritten, modelfolder.Unverified, modelfolder.Configured, modelfolder.Added,
		modelfolder.Along, modelfolder.Copied, modelfolder.Cloned, modelfolder.Linked),
	reflect.TypeFor[onnx.Placement]():    oneOf(onnx.Copied, onnx.Cloned, onnx.Linked),
	reflect.TypeFor[recommend.Verdict](): oneOf(recommend.NothingNeeded, recommend.Method, recommend.NothingHelps, recommend.NotUnderstood),
}

func oneOf[T ~string](values ...T) map[string]any { return map[string]any{"enum": values} }
