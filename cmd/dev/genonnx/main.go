// Command genonnx turns a protobuf schema into Go code without protoc: the
// schema is compiled by a Go library and handed to protoc-gen-go, which go.mod
// pins as a tool.
//
//	genonnx SCHEMA.proto
//
// writes SCHEMA.pb.go beside the schema.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: genonnx SCHEMA.proto")
		os.Exit(2)
	}
	if err := generate(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "genonnx:", err)
		os.Exit(1)
	}
}

// generate writes the Go code of the schema at path.
func generate(ctx context.Context, path string) error {
	schema, err := compile(ctx, path)
	if err != nil {
		return err
	}
	response, err := plugin(ctx, &pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{schema.GetName()},
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{schema},
	})
	if err != nil {
		return err
	}
	for _, file := range response.GetFile() {
		target := filepath.Join(filepath.Dir(path), filepath.Base(file.GetName()))
		if err := os.WriteFile(target, []byte(file.GetContent()), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// compile parses and links the schema. The name under which its descriptor is
// registered is the full import path, because a program holds one file of a
// name and "onnx.proto" is a likely one.
func compile(ctx context.Context, path string) (*descriptorpb.FileDescriptorProto, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	name := "github.com/rope-rewrite/rope-rewrite/onnx/onnxpb/" + filepath.Base(path)
	compiler := protocompile.Compiler{
		Resolver: &protocompile.SourceResolver{
			Accessor: protocompile.SourceAccessorFromMap(map[string]string{name: string(text)}),
		},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(ctx, name)
	if err != nil {
		return nil, err
	}
	return protoutil.ProtoFromFileDescriptor(files[0]), nil
}

// plugin runs protoc-gen-go on a request.
func plugin(ctx context.Context, request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	in, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", "protoc-gen-go")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go tool protoc-gen-go: %w", err)
	}
	response := new(pluginpb.CodeGeneratorResponse)
	if err := proto.Unmarshal(out, response); err != nil {
		return nil, err
	}
	if response.Error != nil {
		return nil, errors.New(response.GetError())
	}
	return response, nil
}
