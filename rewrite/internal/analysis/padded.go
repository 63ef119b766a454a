package analysis

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/paddingreaders"
)

// paddedDiffer says that a site's op differs from the original for padded queries; who reads them follows.
const paddedDiffer = "padded tokens that see no key get zeros from the op, unlike in the original, "

// paddedRead returns, by place, why sites of a scope are refused: their op differs from the original
// for padded queries that see no key, and another token depends on these.
func (m *measurer) paddedRead(ctx context.Context, l *eval.Evaluator, found []delimited) (map[int]string, error) {
	var suspects []measure.Attention
	for _, d := range found {
		if s := m.Sites[d.index]; s.Unchanged == "" && s.Proof != nil && s.Proof.PaddedDiffer {
			suspects = append(suspects, *s.Attention)
		}
	}
	if len(suspects) == 0 {
		return nil, nil
	}
	m.say("looking for readers of padded tokens")
	culprits, err := paddingreaders.Culprits(ctx, l, found[0].scope, suspects)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	why := "and the output for other tokens depends on them"
	if err != nil {
		culprits, why = suspects, fmt.Sprintf("and it could not be determined whether other tokens depend on them: %v", err)
	}
	refused := map[int]string{}
	for _, f := range culprits {
		refused[f.Index] = paddedDiffer + why
	}
	for _, f := range suspects { // what a rare call shows, no run of the stand-in has
		if refused[f.Index] != "" {
			continue
		}
		if later := slices.IndexFunc(found, func(d delimited) bool { return d.index > f.Index && m.Sites[d.index].showsPadded() }); later >= 0 {
			refused[f.Index] = fmt.Sprintf("%sand %s shows them to other tokens in some call", paddedDiffer, m.Sites[found[later].index].Node)
		}
	}
	return refused, nil
}

// showsPadded reports whether a token that is not padding was seen to see one that is.
func (s Site) showsPadded() bool {
	return s.Attention != nil && s.Attention.Measured.Cases.RealSeesPadded
}

// paddedReadLater returns, by place, why sites are refused whose op differs from the original for padded queries that
// see no key, in a branch where that of another call may see what the caches then hold of these tokens: one whose
// attention has a cache, and was not seen to hide padding. The nodes of the model's own graph run in each call.
func (m *measurer) paddedReadLater() map[int]string {
	refused := map[int]string{}
	for i, s := range m.Sites {
		if s.Unchanged != "" || s.Proof == nil || !s.Proof.PaddedDiffer || s.Scope == "" {
			continue
		}
		later := slices.IndexFunc(m.Sites, func(other Site) bool {
			return other.Scope != "" && other.Scope != s.Scope && other.seesPaddedCache()
		})
		if later >= 0 {
			refused[i] = fmt.Sprintf("%sand %s in %s may see them in a cache", paddedDiffer, m.Sites[later].Node, m.Sites[later].Scope)
		}
	}
	return refused
}

// seesPaddedCache reports whether a site may read padded tokens of a cache.
func (s Site) seesPaddedCache() bool {
	if s.Attention == nil || s.Attention.Measured.RotationOnly || s.Attention.Measured.Rotated != nil { // its mask is unknown
		return true
	}
	a := s.Attention.Measured
	return !a.Attention.Cross && !a.Attention.Mask.Padding && lower.CacheOf(a) != lower.NoCache
}

// refusePadded leaves the sites unchanged of which their place says why.
func (m *measurer) refusePadded(refused map[int]string) {
	if m.opts.KeepsAttention { // the model's own attention may stay
		if m.OpUnfit == nil {
			m.OpUnfit = map[int]string{}
		}
		maps.Copy(m.OpUnfit, refused)
		return
	}
	for i, why := range refused {
		s := &m.Sites[i]
		if s.Attention.Measured.Turned {
			why = s.Reason + "; its scores alone cannot be rewritten either: " + why
		}
		s.leave(PaddingRead, why)
	}
}
