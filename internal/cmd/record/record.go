package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// record runs the program once and returns what it did as text. The folder that
// it writes into has another name every time: OUT stands for it.
func record(ctx context.Context, program, model string, request []string) (string, error) {
	folder, err := os.MkdirTemp("", "record-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	args := append([]string{model, "--json", "-o", filepath.Join(folder, "model.onnx")}, request...)
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, program, args...)
	command.Stdout, command.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	report, err := withoutTime(stdout.Bytes())
	if err != nil {
		return "", err
	}
	digests, err := digests(folder)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("== %s %s\nexit code %d\n%s%s%s\n", model, strings.Join(request, " "),
		command.ProcessState.ExitCode(), stderr.String(), report, digests)
	return strings.ReplaceAll(text, folder, "OUT"), nil
}

// withoutTime lays a report out with its keys in order, without what the clock
// says. A run that failed early has no report.
func withoutTime(report []byte) ([]byte, error) {
	if len(report) == 0 {
		return nil, nil
	}
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(report))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		return nil, fmt.Errorf("the report is no JSON object: %w", err)
	}
	delete(fields, "seconds")
	return json.MarshalIndent(fields, "", " ")
}

// digests returns a line for each file of a folder.
func digests(folder string) (string, error) {
	files, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	var lines strings.Builder
	for _, entry := range files {
		f, err := os.Open(filepath.Join(folder, entry.Name()))
		if err != nil {
			return "", err
		}
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return "", err
		}
		fmt.Fprintf(&lines, "\n%x  %s", sum.Sum(nil), entry.Name())
	}
	return lines.String(), nil
}
