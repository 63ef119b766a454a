package rotation

import (
	"math"
	"strings"
	"testing"
)

// TestReached: what is kept of a basis vector does not grow with the head, and what is no rotation is
// refused before it is kept.
func TestReached(t *testing.T) {
	const wide, places = 4096, 18
	rows := func(fill func(row []float64, place int)) [][]float64 {
		y := make([][]float64, places)
		for p := range y {
			y[p] = make([]float64, wide)
			fill(y[p], p)
		}
		return y
	}
	rotated := rows(func(row []float64, p int) { row[7], row[7+wide/2] = math.Cos(float64(p)), math.Sin(float64(p)) })
	rotated[3][100] = 1e-6 // less than counts
	m, err := reached(rotated, 7, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	for p, r := range m {
		if len(r) != 2 || r[7] != math.Cos(float64(p)) || r[7+wide/2] != math.Sin(float64(p)) {
			t.Errorf("at position %d the channels %v are kept", p, r)
		}
	}
	mixed := rows(func(row []float64, _ int) {
		for c := range row {
			row[c] = 0.5
		}
	})
	if _, err := reached(mixed, 7, 1e-5); err == nil || !strings.Contains(err.Error(), "channel 7 reaches 64 other channels or more") {
		t.Errorf("a vector that reaches all channels: error %v", err)
	}
	rotated[5][9] = math.NaN()
	broken, err := reached(rotated, 7, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	positions := []int64{0, 1, 2, 4, 8, 16, 32}
	alone := make([][][]response, 8)
	for c := range alone {
		alone[c] = [][]response{make([]response, places)}
	}
	alone[7] = [][]response{broken}
	if err := notANumber(alone, positions); err != (NotANumber{16}) {
		t.Errorf("error %v, NaN at position 16 was expected", err)
	}
	if err := notANumber([][][]response{{m}}[:0], positions); err != nil {
		t.Error(err)
	}
}
