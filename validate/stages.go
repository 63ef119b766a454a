package validate

import (
	"fmt"
	"time"
)

// stage is one part of a comparison.
type stage int

const (
	runOriginal stage = iota
	runPatched
	runExact
	runWide
	rewriteAgain
	runExpected
	compareLayers
	runUnoptimised
	runRounded
	stages
)

var stageNames = [stages]string{
	"running the original", "running the patched model", "running the original with its own caches", "running the original in float32", "rewriting the original as the record says",
	"running the original with these methods", "comparing layer by layer", "running the original without graph optimisations",
	"running the original with every number rounded once more",
}

// clock says what is being done and about how long the rest takes: the time of each stage, in runs of the
// original, was counted on a model of 135M parameters.
type clock struct {
	say    func(string)
	began  time.Time
	now    stage
	took   [stages]time.Duration // 0 where the stage was not met
	absent [stages]bool          // this comparison does not have the stage
}

// usual is how many times as long as a run of the original each stage takes.
var usual = [stages]float64{1, 1, 1, 1, 2, 1, 2, 1, 3}

// begin says that a stage begins; detail is added to its name.
func (c *clock) begin(s stage, detail string) {
	c.end()
	c.now, c.began = s, time.Now()
	text := stageNames[s] + detail
	if left := c.left(); left >= time.Second {
		text += fmt.Sprintf(", about %d s left", int(left.Seconds()+0.5))
	}
	c.say(text)
}

// end notes how long a stage took.
func (c *clock) end() {
	if !c.began.IsZero() && c.took[c.now] == 0 {
		c.took[c.now] = time.Since(c.began)
	}
}

// left is how long the stages from the present one on may take; 0 where that is not known.
func (c *clock) left() time.Duration {
	whole := c.took[runOriginal]
	sum := time.Duration(0)
	for s := c.now; s < stages; s++ {
		switch {
		case c.absent[s]:
		case c.took[s] > 0:
			sum += c.took[s]
		default:
			sum += time.Duration(usual[s] * float64(whole))
		}
	}
	if whole == 0 {
		return 0
	}
	return sum
}
