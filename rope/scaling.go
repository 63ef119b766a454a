package rope

import (
	"cmp"
	"errors"
	"fmt"
)

// Parameters that scaling methods share, under Hugging Face's names.
var (
	paramTheta = Param{
		Name: "rope_theta", Kind: Real, Rule: aboveOne,
		Doc: "base θ; the frequencies are then computed from it instead of taken from the graph",
	}
	paramPartial = Param{
		Name: "partial_rotary_factor", Kind: Real, Rule: share,
		Doc: "rotated share of the head's channels; must equal the graph's",
	}
	paramOriginal = Param{
		Name: "original_max_position_embeddings", Kind: Whole, Counts: true, Rule: atLeastOne,
		Doc: "trained context L0; if not given, the configuration's",
	}
	paramBetaFast = Param{
		Name: "beta_fast", Kind: Real, Default: Number(32), Rule: aboveZero,
		Doc: "turns within L0 above which a frequency is unchanged",
	}
	paramBetaSlow = Param{
		Name: "beta_slow", Kind: Real, Default: Number(1), Rule: aboveZero,
		Doc: "turns within L0 below which a frequency is divided by factor",
	}
	paramTruncate = Param{
		Name: "truncate", Kind: Switch, Default: Bool(true),
		Doc: "round the ends of the ramp outwards to whole pairs",
	}
	paramFactor = Param{
		Name: "factor", Kind: Real, Rule: atLeastOne, Stretches: true,
		Doc: "how many times longer the context becomes; if not given, context / trained context",
	}
)

// checkRotation refuses an attention without rotation, and one whose rotated
// width is not the one that partial_rotary_factor names.
func (e edit) checkRotation() error {
	pairs := len(e.Encoding.Frequencies)
	if pairs == 0 {
		return cmp.Or(e.byDistance(), errors.New("the attention has no rotation to change"))
	}
	if !e.given("partial_rotary_factor") {
		return nil
	}
	asked := int(float64(e.HeadSize) * e.number("partial_rotary_factor"))
	if asked/2 != pairs {
		return fmt.Errorf("partial_rotary_factor=%v rotates %d of %d channels, but the graph rotates %d; leave the key out to keep the graph's width",
			e.value("partial_rotary_factor"), asked, e.HeadSize, 2*pairs)
	}
	return nil
}

// byDistance refuses a method for rotations where heads go by a bias by distance instead; nil where they
// do not.
func (e edit) byDistance() error {
	switch {
	case e.Distance.IsZero():
		return nil
	case e.Distance.Slopes != nil:
		return errors.New("the attention has no rotation to change: its heads take a slope times the distance from each score (ALiBi); --scaling linear:factor= divides the slopes, and masks can be changed")
	}
	return errors.New("the attention has no rotation to change: its heads add a learned number for each range of distances (T5), which no method scales; masks can be changed")
}

// source returns the frequencies that a method starts from: computed from
// rope_theta if it is given, else the measured ones, if they can be scaled.
func (e edit) source() (frequencies []float64, warnings []string, err error) {
	if err := e.checkRotation(); err != nil {
		return nil, nil, err
	}
	if !e.given("rope_theta") {
		if e.own.NTK > 0 {
			return nil, nil, fmt.Errorf("the graph has dynamic NTK with factor %s, which raises the base in calls that reach more than %d tokens. To have the same frequencies at every length, give base=original to start from those of shorter calls, or rope_theta= to compute them afresh", formatNumber(e.own.NTK), e.own.Trained)
		}
		if e.own.Trained > 0 {
			return nil, nil, fmt.Errorf("the graph has a second set of frequencies for calls that reach more than %d tokens, as in LongRoPE, and no method scales two sets; give rope_theta= to compute one set for every length", e.own.Trained)
		}
		if i, ok := e.Encoding.Aliases(); ok {
			return nil, nil, fmt.Errorf("pair %d turns by %g radians per position, more than π, so its true frequency cannot be measured at integer positions, and it cannot be scaled; give rope_theta= to compute the frequencies afresh",
				i, e.Encoding.Frequencies[i])
		}
		if _, ok := e.Encoding.Base(); !ok && len(e.Encoding.Frequencies) > 1 && !e.given(paramBase.Name) {
			warnings = append(warnings, "the graph's frequencies are not the powers of one base: if they are already scaled, this scaling is added to the earlier one (base=carried confirms that)")
		}
		return e.Encoding.Frequencies, warnings, nil
	}
	asked := e.number("rope_theta")
	measured, ok := e.Encoding.Base()
	switch {
	case !ok:
		warnings = append(warnings, fmt.Sprintf("rope_theta=%v replaces the graph's frequencies, which are not the powers of one base", e.value("rope_theta")))
	case e.Encoding.misfit(asked) >= 0:
		warnings = append(warnings, fmt.Sprintf("rope_theta=%v replaces the graph's base %s", e.value("rope_theta"), formatNumber(measured)))
	}
	return e.Encoding.powers(asked), warnings, nil
}

// base returns the base of the frequencies that source returns.
func (e edit) base() (float64, error) {
	if e.given("rope_theta") {
		return e.number("rope_theta"), nil
	}
	base, err := e.Encoding.base()
	if err == nil {
		e.used.note(paramTheta.Name, Number(base), Measured)
		return base, nil
	}
	hint := "rope_theta="
	if e.Theta > 0 {
		hint += formatNumber(e.Theta) + " (the configuration's)"
	}
	return 0, fmt.Errorf("the method needs the base of the frequencies, but the graph's have none (%w); give %s to compute them afresh", err, hint)
}

// trained returns the trained context L0: the given one, else the configuration's.
func (e edit) trained() (int64, error) {
	if e.given("original_max_position_embeddings") {
		return e.integer("original_max_position_embeddings"), nil
	}
	switch {
	case e.Original == 0 && e.Unread != nil:
		return 0, fmt.Errorf("the trained context is unknown: the model's configuration cannot be read (%w); correct it, or give original_max_position_embeddings=", e.Unread)
	case e.Original == 0:
		return 0, errors.New("the trained context is unknown: give original_max_position_embeddings=, or put the model's config.json beside it")
	}
	e.used.note(paramOriginal.Name, Integer(e.Original), Configuration)
	return e.Original, nil
}

// factor returns the given factor, else the one that the context asks for.
// original is the trained context, 0 if unknown.
func (e edit) factor(original int64) (factor float64, warnings []string, err error) {
	if !e.given("factor") {
		if e.Length != 0 && original == 0 && e.Unread != nil {
			_, err := e.trained()
			return 0, nil, fmt.Errorf("the factor is unknown, because %w, or give factor=", err)
		}
		if e.Length == 0 || original == 0 {
			return 0, nil, errors.New("the factor is unknown: give factor=, or both the context to reach (--context) and the trained context (original_max_position_embeddings)")
		}
		factor = float64(e.Length) / float64(original)
		if factor < 1 {
			return 0, nil, fmt.Errorf("the context of %d tokens is shorter than the trained context of %d: there is nothing to extend", e.Length, original)
		}
		e.used.note(paramFactor.Name, Number(factor), FromContext)
		return factor, nil, nil
	}
	factor = e.number("factor")
	return factor, e.factorWarnings(factor, original), nil
}

// factorWarnings compares the given factor with the context that was asked for.
func (e edit) factorWarnings(factor float64, original int64) []string {
	if warnings := e.tooFar("factor", original); warnings != nil || original == 0 || e.Length == 0 {
		return warnings
	}
	reach := factor * float64(original)
	reaches := fmt.Sprintf("factor=%v reaches %.0f tokens from a trained context of %d", e.value("factor"), reach, original)
	switch asked := float64(e.Length); {
	case asked > reach:
		return []string{fmt.Sprintf("%s, less than the context of %d", reaches, e.Length)}
	case e.Length <= original && factor > 1:
		return []string{fmt.Sprintf("the context of %d tokens does not exceed the trained context of %d; leave the scaling out, or give a longer --context", e.Length, original)}
	case 2*asked < reach && factor > 1: // up to that it is room, which scalings need at the end of their reach (docs/choosing.md)
		return []string{fmt.Sprintf("%s, more than twice the context of %d; give a smaller factor=", reaches, e.Length)}
	}
	return nil
}
