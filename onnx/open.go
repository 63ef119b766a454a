package onnx

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
)

// Open maps the model at path and reads its structure. Weights are neither
// copied nor decoded, and external data is not looked for before a tensor's
// contents are asked for. The model must be closed; the file must not be
// changed before that. A model in which two things have one name is refused:
// programs differ in which of them they read. The error is a *FileError.
func Open(path string) (*Model, error) {
	m, err := open(path)
	if err != nil {
		return nil, &FileError{path, err}
	}
	return m, nil
}

// OpenFile is Open of a file that is open already, and may be closed afterwards: someone else chose path. External data
// is looked for beside path alone, though that may be a link.
func OpenFile(file *os.File, path string) (*Model, error) {
	m, err := mapModel(file, &folder{model: path})
	if err != nil {
		return nil, &FileError{path, err}
	}
	return m, nil
}

// FileError is an error about a model's file. Its text names the file.
type FileError struct {
	Path string
	Err  error // in whose text Path stands
}

func (e *FileError) Error() string { return e.Err.Error() }
func (e *FileError) Unwrap() error { return e.Err }

func open(path string) (*Model, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a folder, not a model; name the .onnx file inside it", path)
	}
	file, err := links.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	behind, err := folderBehind(path, file)
	if err != nil {
		return nil, err
	}
	return mapModel(file, &folder{model: path, behind: behind})
}

// folderBehind is the folder in which an open file stands, without links. A link may have been changed since it was
// opened; it then has none.
func folderBehind(path string, file *os.File) (string, error) {
	now, err := file.Stat()
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if there, err := os.Lstat(real); err != nil || !os.SameFile(there, now) {
		return "", nil
	}
	return filepath.Dir(real), nil
}

func mapModel(file *os.File, f *folder) (*Model, error) {
	path := f.model
	mapped, err := mapFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m, err := parse(mapped.data, f)
	if err == nil {
		err = m.checkDoubles()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), mapped.close())
	}
	m.Path, m.file = path, mapped
	return m, nil
}

// Parse reads a model from memory. data is kept, not copied, and must not be
// changed while the model is in use. Names are not checked. External data of such a model has no
// known folder, so its contents cannot be read.
func Parse(data []byte) (*Model, error) { return parse(data, nil) }

func parse(data []byte, f *folder) (*Model, error) {
	m := &Model{src: source{data}, folder: f}
	if err := m.read(&reader{folder: f}); err != nil {
		if what := recognise(data); what != "" {
			return nil, otherFormat(what)
		}
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return m, nil
}

// otherFormat is the error about a file of another kind. It is an ErrFormat.
type otherFormat string

func (what otherFormat) Error() string        { return "this is " + string(what) }
func (what otherFormat) Is(target error) bool { return target == ErrFormat }

// recognise names what else data might be, with what to do about it.
func recognise(data []byte) string {
	start := data[:min(len(data), 512)]
	lower := bytes.ToLower(bytes.TrimSpace(start))
	switch {
	case len(data) == 0:
		return "an empty file, not a model; copy or download it again"
	case bytes.HasPrefix(start, []byte("version https://git-lfs")):
		return "a git-lfs pointer, not a model; run git lfs pull"
	case bytes.HasPrefix(lower, []byte("<!doctype html")), bytes.HasPrefix(lower, []byte("<html")):
		return "a web page, not a model; download the file itself"
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		return "a zip archive (PyTorch files are zip archives), not a model; unpack it, or export the model to ONNX"
	case bytes.HasPrefix(start, []byte("\x1f\x8b")):
		return "compressed with gzip; unpack it first"
	case len(start) >= 8 && string(start[4:8]) == "ORTM":
		return "in ONNX Runtime's .ort format; use the .onnx file that it was made from"
	case len(start) >= 9 && start[8] == '{':
		return "a safetensors file, not a model; export the model to ONNX"
	case bytes.HasPrefix(start, []byte("GGUF")):
		return "a GGUF file, not a model in ONNX; export the model that it was made from to ONNX"
	case bytes.HasPrefix(lower, []byte("{")) && isText(start):
		return "a JSON file, not a model; give the .onnx file"
	case isText(start):
		return "a text file, not a model; give the .onnx file"
	}
	return ""
}

// isText reports whether b is printable UTF-8, perhaps cut within a character.
func isText(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			return len(b) < utf8.UTFMax
		}
		if r < ' ' && r != '\n' && r != '\r' && r != '\t' {
			return false
		}
		b = b[n:]
	}
	return true
}

// Close releases the mapped files. Contents of tensors must not be used
// afterwards.
func (m *Model) Close() error {
	var errs []error
	if m.folder != nil {
		errs = append(errs, m.folder.close())
	}
	if m.file != nil {
		errs = append(errs, m.file.close())
	}
	return errors.Join(errs...)
}
