package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
)

// columns of the table of pieces, which git keeps.
var columns = []string{"commit", "exports", "first", "made", "judged", "same", "unchanged", "wrong", "control", "control_changed", "drawn", "drawn_changed", "provider"}

// row is a piece as a line of the table.
func (p *piece) row() []string {
	row := []string{p.Commit, strconv.Itoa(len(p.Exports)), strconv.FormatUint(p.First, 10)}
	for _, n := range []int{p.Made(), p.Judged, p.Same, p.Kept, p.Wrong, p.Control, p.ControlChanged, p.Drawn, p.DrawnChanged} {
		row = append(row, strconv.Itoa(n))
	}
	return append(row, p.Provider)
}

// sum prints the sums of a table, into which a piece is put first, in the place of what is there of the same piece.
func sum(table, added string) error {
	rows, err := readTable(table)
	if err != nil {
		return err
	}
	if added != "" {
		p, err := readPiece(added)
		if err != nil {
			return err
		}
		if p == nil {
			return fmt.Errorf("there is no piece %s", added)
		}
		rows = slices.DeleteFunc(rows, func(row []string) bool { return row[0] == p.Commit && row[2] == strconv.FormatUint(p.First, 10) })
		rows = append(rows, p.row())
		if err := writeTable(table, rows); err != nil {
			return err
		}
	}
	sums := make([]int, len(columns))
	for _, row := range rows {
		for i := 3; i < len(columns)-1; i++ {
			n, err := strconv.Atoi(row[i])
			if err != nil {
				return fmt.Errorf("%s: %w", table, err)
			}
			sums[i] += n
		}
	}
	for i := 3; i < len(columns)-1; i++ {
		fmt.Printf("%s %d\n", columns[i], sums[i])
	}
	return nil
}

func readTable(path string) ([][]string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = len(columns)
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rows[min(1, len(rows)):], nil
}

func writeTable(path string, rows [][]string) error {
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	err = csv.NewWriter(f).WriteAll(slices.Concat([][]string{columns}, rows))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
