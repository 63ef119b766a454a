package customop

import (
	"cmp"
	"errors"
	"fmt"
)

// check refuses what no input could make right. What depends on shapes is left
// to the kernel, which knows them.
func (r Rotary) check() error {
	if len(r.Frequencies) == 0 {
		return errors.New("frequencies has no values: nothing would be rotated")
	}
	return cmp.Or(
		r.checkKey(),
		r.checkPositions(),
		oneOf("tensor_format", r.TensorFormat, "bshd", "sbhd", "bhsd", "thd"),
		flag("interleaved", r.Interleaved),
		flag("inverse", r.Inverse),
		flag("exact_angles", r.ExactAngles),
		notNegative("rotary_offset", r.RotaryOffset),
		finite("frequencies", r.Frequencies...),
		finite("gain", r.Gain),
		r.Rotation().checkTrainedLength(),
	)
}

// Rotation returns an attention op with the attributes of the rotation alone.
func (r Rotary) Rotation() RotaryAttention {
	layout := "half"
	if r.Interleaved == 1 {
		layout = "interleaved"
	}
	return RotaryAttention{
		Frequencies: r.Frequencies, Gain: r.Gain, RotaryLayout: layout, RotaryOffset: r.RotaryOffset,
		ExactAngles: r.ExactAngles, PositionAxes: r.PositionAxes,
		TrainedLength: r.TrainedLength, LongFrequencies: r.LongFrequencies, DynamicNtk: r.DynamicNtk, DynamicLinear: r.DynamicLinear,
	}
}

// SetRotation gives the op the rotation of an attention op.
func (r *Rotary) SetRotation(a RotaryAttention) {
	r.Interleaved = 0
	if a.RotaryLayout == "interleaved" {
		r.Interleaved = 1
	}
	r.Frequencies, r.Gain, r.RotaryOffset = a.Frequencies, a.Gain, a.RotaryOffset
	r.ExactAngles, r.PositionAxes = a.ExactAngles, a.PositionAxes
	r.TrainedLength, r.LongFrequencies, r.DynamicNtk, r.DynamicLinear = a.TrainedLength, a.LongFrequencies, a.DynamicNtk, a.DynamicLinear
}

func (r Rotary) checkKey() error {
	if (r.Key == "") != (r.RotatedKey == "") {
		return errors.New("key and rotated_key are given together or not at all")
	}
	return nil
}

// checkPositions refuses positions that are given twice or not at all.
func (r Rotary) checkPositions() error {
	packed := r.TensorFormat == "thd"
	switch {
	case r.PositionIDs != "" && (r.CuSeqlens != "" || r.SeqlenOffsets != ""):
		return errors.New("position_ids says all positions: it goes without cu_seqlens and seqlen_offsets")
	case packed && r.PositionIDs == "" && r.CuSeqlens == "":
		return errors.New(`tensor_format "thd" needs cu_seqlens or position_ids`)
	case !packed && r.CuSeqlens != "":
		return errors.New(`cu_seqlens needs tensor_format "thd": other formats have a dimension for sequences`)
	case len(r.PositionAxes) > 0 && len(r.PositionAxes) != len(r.Frequencies):
		return fmt.Errorf("position_axes has %d values, frequencies %d", len(r.PositionAxes), len(r.Frequencies))
	case len(r.PositionAxes) > 0 && r.PositionIDs == "":
		return errors.New("position_axes needs position_ids")
	}
	for pair, axis := range r.PositionAxes {
		if axis < 0 {
			return fmt.Errorf("position_axes[%d] is %d: it must not be negative", pair, axis)
		}
	}
	return nil
}
