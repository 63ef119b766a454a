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

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
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
// says and without the version of the program. A run that failed early has no report.
func withoutTime(report []byte) ([]byte, error) {
	if len(report) == 0 {
		return nil, nil
	}
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(report))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		return nil, fmt.Errorf("the report is not a JSON object: %w", err)
	}
	delete(fields, "seconds")
	if record, ok := fields["record"].(map[string]any); ok {
		delete(record, "tool")
	}
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
		sum, err := digest(filepath.Join(folder, entry.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&lines, "\n%x  %s", sum, entry.Name())
	}
	return lines.String(), nil
}

// digest returns the SHA-256 of a file, of a model without the version of the program
// that wrote it and without the sentences of its record, which the report has too.
func digest(path string) ([]byte, error) {
	sum := sha256.New()
	if filepath.Ext(path) == ".onnx" {
		data, err := withoutTexts(path)
		sum.Write(data)
		return sum.Sum(nil), err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(sum, f)
	return sum.Sum(nil), errors.Join(err, f.Close())
}

func withoutTexts(path string) ([]byte, error) {
	m, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	record, err := provenance.Read(m)
	if err != nil {
		return nil, err
	}
	record.Tool = ""
	for i := range record.Edits {
		record.Edits[i].Note = ""
	}
	for i := range record.Sites {
		record.Sites[i].Reason = ""
	}
	for i := range record.Kept {
		record.Kept[i].Reason = ""
	}
	if err := provenance.Write(m, record); err != nil {
		return nil, err
	}
	return m.Marshal()
}
