package encoding

import "fmt"

// Learned is a table that training found, a row for each position, which is added to embeddings.
// (Gehring et al., Convolutional Sequence to Sequence Learning, arXiv:1705.03122, section 3.1.)
type Learned struct {
	Table  [][]float64
	Offset int64 // rows before that of position 0: OPT and BART have 2
}

// At returns the row of a position. Beyond the table there is none: a model cannot read longer
// texts than it was trained for.
func (l Learned) At(position int64) ([]float64, error) {
	row := position + l.Offset
	if position < 0 || row >= int64(len(l.Table)) {
		return nil, fmt.Errorf("position %d: the table has positions 0 to %d", position, int64(len(l.Table))-l.Offset-1)
	}
	return l.Table[row], nil
}
