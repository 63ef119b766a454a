package score

import "slices"

// Cases say what happens to queries in some call, however rare it is. What a query without keys gets is not measured.
type Cases struct {
	RealWithoutKeys   bool // a token that is not padding sees no key
	PaddedWithoutKeys bool // a padded token sees no key, in a row that is not all padding
	RealSeesPadded    bool // a token that is not padding sees a padded one
}

// note adds what happens in a sample. Without a padding mask other inputs, such as token ids, may say what is padding;
// a hidden state that hides keys may do so from any query.
func (s *Scorer) note(fit *Fit, smp Sample) {
	if s.mayHide() {
		return
	}
	total, told := smp.Pt.Keys(), s.Mask != "" || len(s.Others) == 0
	for r := range smp.out {
		_, b, i := s.place(smp.Pt, r)
		keys, row := fit.Shown(smp, r, b, i), smp.Mask[b*total:(b+1)*total]
		real := told && row[smp.Pt.P+i] != 0
		switch none := keys.First() < 0; {
		case none && real:
			fit.Cases.RealWithoutKeys = true
		case none && slices.Contains(row, 1):
			fit.Cases.PaddedWithoutKeys = true
		case real && !fit.Cases.RealSeesPadded:
			for j, there := range row {
				fit.Cases.RealSeesPadded = fit.Cases.RealSeesPadded || there == 0 && keys.Has(int64(j))
			}
		}
	}
}
