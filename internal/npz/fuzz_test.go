package npz_test

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	npyz "github.com/sbinet/npyio/npz"

	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testfuzz"
)

// FuzzRead: the arrays of an archive, behind the archive itself where the input does not begin with PK. They
// are refused in one line, or have the elements of their shape, and no more than the file has.
func FuzzRead(f *testing.F) {
	path := filepath.Join(f.TempDir(), "a.npz")
	if err := npyz.Write(path, map[string]any{"input_ids.npy": []int64{1 << 40, -1, 3, 4}}); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	header := func(text string) string {
		text += strings.Repeat(" ", 117-len(text)) + "\n"
		return "\x93NUMPY\x01\x00" + string([]byte{byte(len(text)), 0}) + text
	}
	row := strings.Repeat("\x01\x00\x00\x00\x00\x00\x00\x00", 6)
	seeds := []string{
		string(whole), header("{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }") + row, header("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }") + row[:12],
		header("{'descr': '<i8', 'fortran_order': True, 'shape': (), }") + row, header("{'descr': '<i8', 'fortran_order': False, 'shape': (9223372036854775807, 3), }") + row,
		header("{'descr': '<i8', 'fortran_order': False, 'shape': (-1, 3), }") + row, header("{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000, 1000), }") + row,
	}
	testfuzz.Run(f, seeds, 1000, func(t testing.TB, data []byte) bool {
		if !bytes.HasPrefix(data, []byte("PK")) {
			data = archived(t, data)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := npz.Open(path)
		if err != nil {
			oneLine(t, err)
			return false
		}
		defer file.Close()
		read := false
		for _, key := range file.Keys() {
			ids, shape, err := file.Int64(key)
			count := len(ids)
			if err != nil {
				oneLine(t, err)
				var floats []float32
				if floats, shape, err = file.Float32(key); err != nil {
					oneLine(t, err)
					continue
				}
				count = len(floats)
			}
			want := 1
			for _, d := range shape {
				want *= d
			}
			if want != count || count > 1100*len(data) {
				t.Errorf("%d elements of the shape %v in %d bytes", count, shape, len(data))
			}
			read = true
		}
		return read
	})
}

// archived is an archive of one array.
func archived(t testing.TB, array []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("input_ids.npy")
	if err == nil {
		_, err = w.Write(array)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func oneLine(t testing.TB, err error) {
	t.Helper()
	if text := err.Error(); text == "" || strings.Contains(text, "\n") {
		t.Errorf("the error is not one line: %q", text)
	}
}
