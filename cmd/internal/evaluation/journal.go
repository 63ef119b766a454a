package evaluation

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Journal is a file with a line of JSON for each sample. Its first line says what is measured (About), so
// that another evaluation does not go on with it.
type Journal struct{ file *os.File }

// OpenJournal opens a journal for what about says. With resume it returns the samples that the file
// holds, if it is about the same; without it, a file that is there is an error.
func OpenJournal(path string, about About, resume bool) (*Journal, []Sample, error) {
	title, err := json.Marshal(about)
	if err != nil {
		return nil, nil, err
	}
	flags := os.O_RDWR | os.O_CREATE
	if !resume {
		flags |= os.O_EXCL
	}
	f, err := os.OpenFile(path, flags, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil, nil, fmt.Errorf("%s exists from an earlier evaluation; continue it with --resume, or name another folder", path)
	}
	if err != nil {
		return nil, nil, err
	}
	j := &Journal{f}
	samples, end, err := read(f, about, string(title))
	if err == nil && end == 0 {
		_, err = f.Write(append(title, '\n'))
	} else if err == nil {
		// What an interruption left of a line goes.
		if err = f.Truncate(end); err == nil {
			_, err = f.Seek(end, 0)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return j, samples, nil
}

// read reads the whole lines of a journal, which end at end.
func read(f *os.File, about About, title string) (samples []Sample, end int64, err error) {
	r := bufio.NewReader(f)
	for first := true; ; first = false {
		line, err := r.ReadString('\n')
		if err != nil {
			return samples, end, nil // without its line break the last line is not whole
		}
		if first && line != title+"\n" {
			return nil, 0, about.differs([]byte(line))
		}
		end += int64(len(line))
		if first {
			continue
		}
		var s Sample
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			return nil, 0, fmt.Errorf("a line is not a sample: %w", err)
		}
		samples = append(samples, s)
	}
}

// Add writes a sample.
func (j *Journal) Add(s Sample) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(b, '\n'))
	return err
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }
