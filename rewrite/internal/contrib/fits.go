package contrib

import (
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Version is a minor version of ONNX Runtime: 22 is 1.22. The zero value is the newest.
type Version int

// oldest is the first that computes a chunk of several tokens after a past as it should:
// 1.19.2 is off by 1.8 times the largest logit of a small model there.
const oldest Version = 20

// ParseVersion reads "1.22" or "1.22.1".
func ParseVersion(text string) (Version, error) {
	var minor, patch int
	if n, _ := fmt.Sscanf(text+".0", "1.%d.%d", &minor, &patch); n != 2 || minor < int(oldest) {
		return 0, fmt.Errorf("%q is not a version of ONNX Runtime from %v on, such as 1.22", short.Name(text), oldest)
	}
	return Version(minor), nil
}

func (v Version) String() string { return fmt.Sprintf("1.%d", int(v)) }

// has reports whether the version has what came with another one.
func (v Version) has(since Version) bool { return v == 0 || v >= since }

// When GroupQueryAttention got what an op may need, by the operator's schema in the
// packages of onnxruntime. A window of n keys is n keys from 1.24 on; up to 1.23.2 a model
// with windows was off by 5 %.
const (
	sinceSinks         Version = 23
	sinceWindow        Version = 24
	sinceScales        Version = 27 // caches of int8 on the CPU
	sinceShortScales   Version = 29
	sinceBidirectional Version = 30
)

// Refused says why a version of ONNX Runtime cannot compute an op as GroupQueryAttention; nil if it can.
func Refused(op customop.RotaryAttention, of Node, runtime Version) error {
	switch {
	case len(op.BandStarts) > 1 || len(op.BandQueryScales)+len(op.BandQueryOffsets)+len(op.BandKeyScales)+len(op.BandQueryLimits)+len(op.BandGroups) > 0 || op.BandChunk > 0:
		return errors.New("it has no position maps")
	case op.Cache == "raw":
		return errors.New("its cache has rotated keys, not raw ones")
	case op.TrainedLength > 0:
		return errors.New("its frequencies do not depend on the length of a call")
	case len(op.Temperature) > 0:
		return errors.New("it has no temperature by position")
	case op.Cross == 1:
		return errors.New("it needs as many new keys as queries, and here the keys come from another text")
	case op.DocumentIDs != "":
		return errors.New("it has no document masks")
	case op.FirstKeys > 0:
		return errors.New("it cannot keep first keys visible beside a window")
	case op.CacheType != "" && op.CacheType != "same":
		return errors.New("its caches of few bits are int8 with fixed scales (--kv-scales FILE); only --target ops and --target onnx have others (--kv type=…)")
	case len(op.DistanceSlopes)+len(op.DistanceStarts) > 0:
		return errors.New("it has no bias by distance, as ALiBi's slopes and T5's buckets are; only --target ops and --target onnx have")
	case op.AttentionBias != "" || op.BiasBeforeSoftcap != "":
		return errors.New("only some of its versions and devices take a bias on the scores")
	case of.Drawn:
		return errors.New("it counts tokens, and here their positions are drawn at random")
	case len(op.PositionAxes) > 0:
		return errors.New("it has one position for each token, and here tokens have several positions")
	case len(op.QueryFactors)+len(op.KeyFactors) > 0:
		return errors.New("it cannot multiply channels after the rotation, as the weights of a norm do here")
	case op.RotaryOffset > 0:
		return errors.New("it rotates only the first channels of a head, and here others are rotated")
	case len(op.Frequencies)%8 != 0:
		return fmt.Errorf("it rotates only multiples of 16 channels, and here %d are rotated", 2*len(op.Frequencies))
	case op.LogSumExp != "":
		return errors.New("it has no log-sum-exp output")
	}
	return newer(op, of, runtime)
}

// newer refuses what came with a newer version.
func newer(op customop.RotaryAttention, of Node, runtime Version) error {
	for _, c := range []struct {
		needed bool
		since  Version
		what   string
	}{
		{op.SinkLogits != "", sinceSinks, "sinks"},
		{op.Window > 0, sinceWindow, "a window of this size"},
		{of.Scales != nil, sinceScales, "caches of int8"},
		{of.Scales != nil && ir.Is16Bit(of.Element), sinceShortScales, "caches of int8 for a model in 16 bits"},
		{op.Causal == 0, sinceBidirectional, "attention to later tokens"},
	} {
		if c.needed && !runtime.has(c.since) {
			return fmt.Errorf("it has %s only from ONNX Runtime %v on, and %v was asked for", c.what, c.since, runtime)
		}
	}
	if op.Causal == 0 && op.Window > 0 {
		return errors.New("it has a window only for causal attention")
	}
	return nil
}

// Needs is the oldest version of ONNX Runtime whose GroupQueryAttention computes an op that
// is not refused.
func Needs(op customop.RotaryAttention, of Node) Version {
	v := oldest
	for v < sinceBidirectional && newer(op, of, v) != nil {
		v++
	}
	return v
}
