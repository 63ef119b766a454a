package paddingreaders

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// chunks are lengths of which a model may run multiples alone: layers of states (Mamba) work in chunks
// of a power of two, and exporters write down that the example filled its last one.
var chunks = []int64{64, 256}

// findRoles finds which dimensions of the outputs are batch, length, and past + length, by
// two calls of different sizes.
func (r *paddingTest) findRoles(ctx context.Context) error {
	err := r.findRolesAt(ctx)
	if err == nil || bisect.Ended(err) || r.table.Past || r.table.Static.L > 0 {
		return err
	}
	for _, r.chunk = range chunks {
		if r.findRolesAt(ctx) == nil {
			return nil
		}
	}
	return err
}

// findRolesAt is findRoles with multiples of a chunk as lengths.
func (r *paddingTest) findRolesAt(ctx context.Context) error {
	points := []dim.Point{r.sizesNear(dim.Point{B: 3, L: 11, P: 7}), r.sizesNear(dim.Point{B: 2, L: 13, P: 10})}
	if r.lengthTracked() {
		points = []dim.Point{r.sizesNear(dim.Point{B: 3, L: 11, P: 0}), r.sizesNear(dim.Point{B: 2, L: 13, P: 0})}
	}
	if points[0].L == points[1].L && r.chunk > 1 {
		points[1].L += r.chunk
	}
	var shapes [2]map[string]engine.Tensor
	for k, pt := range points {
		for b := pt.B; ; b = 1 {
			pt.B = b
			mask := slices.Repeat([]int64{1}, int(pt.B*(pt.L+pt.P)))
			var err error
			shapes[k], err = r.run(ctx, pt, mask, 0, false, nil)
			if err == nil {
				break
			}
			if b == 1 || r.table.Static.B > 0 {
				return fmt.Errorf("the model without its weights does not run: %w", err)
			}
		}
		points[k] = pt
	}
	for _, o := range r.standIn.outputs {
		x, y := shapes[0][o].Dims, shapes[1][o].Dims
		if len(x) == len(y) {
			r.roles[o] = rolesOf(x, y, points[0], points[1])
		}
	}
	return nil
}

// role says what a dimension of an output counts.
type role int8

const (
	otherRole role = iota
	batchRole
	lengthRole // new tokens
	totalRole  // cached and new tokens
)

// rolesOf returns the roles of the dimensions x in a call of the sizes p and y in a call of
// the sizes q. In a model of static sizes, where both calls have the same, the first
// dimension that can have a role has it.
func rolesOf(x, y []int64, p, q dim.Point) []role {
	roles := make([]role, len(x))
	for i := range x {
		taken := slices.Contains(roles[:i], lengthRole) || slices.Contains(roles[:i], totalRole)
		switch {
		case i == 0 && x[i] == p.B && y[i] == q.B:
			roles[i] = batchRole
		case x[i] == p.L && y[i] == q.L && (p.L != q.L || !taken):
			roles[i] = lengthRole
		case x[i] == p.L+p.P && y[i] == q.L+q.P && (p.L+p.P != q.L+q.P || !taken):
			roles[i] = totalRole
		}
	}
	return roles
}

// same reports whether two runs give the same for tokens that are not padding.
func (r *paddingTest) same(x, y map[string]engine.Tensor, pt dim.Point, mask []int64) (bool, error) {
	total := pt.L + pt.P
	for _, o := range r.standIn.outputs {
		dims, roles := x[o].Dims, r.roles[o]
		if !slices.Equal(dims, y[o].Dims) {
			return false, nil
		}
		if len(roles) != len(dims) {
			roles = make([]role, len(dims))
		}
		real := func(i int64) bool {
			at := make([]int64, len(dims))
			for k := len(dims) - 1; k >= 0; k-- {
				at[k], i = i%dims[k], i/dims[k]
			}
			first, last := int64(0), pt.B-1
			if b := slices.Index(roles, batchRole); b >= 0 {
				first, last = at[b], at[b]
			}
			for k, a := range roles {
				for b := first; b <= last; b++ {
					if a == lengthRole && mask[b*total+pt.P+at[k]] == 0 || a == totalRole && mask[b*total+at[k]] == 0 {
						return false
					}
				}
			}
			return true
		}
		u, v := x[o].Values(), y[o].Values()
		largest, off := 0.0, 0.0
		for i := range u {
			if !real(int64(i)) {
				continue
			}
			if math.IsNaN(u[i]) {
				return false, errNaN
			}
			if math.IsNaN(v[i]) {
				return false, nil
			}
			largest, off = math.Max(largest, math.Abs(u[i])), math.Max(off, math.Abs(u[i]-v[i]))
		}
		if !(off <= largest*r.standIn.weakest.Epsilon()*unreadRounding) {
			return false, nil
		}
	}
	return true, nil
}

// unreadRounding is by how many units in the last place of the largest output two runs may
// differ. Where tokens are gathered for experts, the two runs may multiply them in blocks
// of different sizes, which round differently.
const unreadRounding = 16
