package ref_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// relative computes a call without past from a matrix of relative distances: no
// vector is rotated and no band is looked up.
func relative(p ref.Problem, distances func(i, j int) (distance float64, visible bool)) (output, logSumExp []float64) {
	a := p.Attention
	for b := range p.Batch {
		for h := range a.Heads {
			kv := h / (a.Heads / a.KVHeads)
			for i := range p.Length {
				sum, out := 0.0, make([]float64, p.ValueSize)
				for j := range p.Length {
					delta, visible := distances(i, j)
					if !visible {
						continue
					}
					row := (b*a.Heads+h)*p.Length + i
					q := p.Query[row*a.HeadSize:][:a.HeadSize]
					k := p.Key[((b*a.KVHeads+kv)*p.Length+j)*a.HeadSize:][:a.HeadSize]
					v := p.Value[((b*a.KVHeads+kv)*p.Length+j)*p.ValueSize:][:p.ValueSize]
					s := product(a.Encoding, q, k, delta) * a.EffectiveScale()
					if p.BiasBeforeSoftcap != nil {
						s += p.BiasBeforeSoftcap[row*p.Length+j]
					}
					if a.Softcap > 0 {
						s = a.Softcap * math.Tanh(s/a.Softcap)
					}
					if p.Bias != nil {
						s += p.Bias[row*p.Length+j]
					}
					sum += math.Exp(s)
					for x := range out {
						out[x] += math.Exp(s) * v[x]
					}
				}
				logSumExp = append(logSumExp, math.Log(sum))
				for _, x := range out {
					switch {
					case sum > 0 && a.Sinks != nil:
						x /= sum + math.Exp(a.Sinks[h])
					case sum > 0:
						x /= sum
					}
					output = append(output, x)
				}
			}
		}
	}
	return output, logSumExp
}

// product is ⟨R(delta)q, k⟩ pair by pair: g²·(cos δω·(q₁k₁ + q₂k₂) + sin δω·(q₁k₂ − q₂k₁)).
func product(e rope.Encoding, q, k []float64, delta float64) float64 {
	sum := 0.0
	rotated := make([]bool, len(q))
	for x, omega := range e.Frequencies {
		one, two := e.Offset+x, e.Offset+x+len(e.Frequencies)
		if e.Layout == rope.Interleaved {
			one, two = e.Offset+2*x, e.Offset+2*x+1
		}
		rotated[one], rotated[two] = true, true
		g := e.EffectiveGain()
		sum += g * g * (math.Cos(delta*omega)*(q[one]*k[one]+q[two]*k[two]) + math.Sin(delta*omega)*(q[one]*k[two]-q[two]*k[one]))
	}
	for c := range q {
		if !rotated[c] {
			sum += q[c] * k[c]
		}
	}
	return sum
}

func visible(m rope.Mask, i, j int) bool {
	return j <= i && (m.Window == 0 || i-j < int(m.Window) || j < int(m.FirstKeys))
}

func TestRelativePlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		p.Positions = positions(p, 0, 1000, -3)
		want, logs := relative(p, func(i, j int) (float64, bool) {
			return float64(i - j), visible(p.Attention.Mask, i, j)
		})
		got := mustRun(t, p)
		if d := max(distance(got.Output, want), distance(got.LogSumExp, logs)); d > 1e-11 {
			t.Fatalf("differs by %g", d)
		}
	})
}

func TestRelativeBidirectional(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		p.Attention.Mask = rope.Mask{Window: rapid.Int64Range(0, 6).Draw(t, "window")}
		w := int(p.Attention.Mask.Window)
		want, logs := relative(p, func(i, j int) (float64, bool) {
			return float64(i - j), w == 0 || (i-j < w && j-i < w)
		})
		got := mustRun(t, p)
		if d := max(distance(got.Output, want), distance(got.LogSumExp, logs)); d > 1e-11 {
			t.Fatalf("differs by %g", d)
		}
	})
}

// STRING by its equation 4, and leaky ReRoPE by its own, which needs raw keys
// and scaled positions.
func TestRelativeMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		p.Attention.Mask.Window, p.Attention.Mask.FirstKeys = 0, 0
		p.Positions = positions(p, rapid.Int64Range(0, 5000).Draw(t, "start"))
		s := rapid.Int64Range(1, 8).Draw(t, "S")
		w := rapid.Int64Range(0, s).Draw(t, "W")
		k := 3.0

		stringed := p
		stringed.Attention = mustApply(t, rope.PositionsAxis,
			rope.Spec{Name: "string", Params: map[string]rope.Value{"shift": rope.Integer(s), "window": rope.Integer(w)}}.String(),
			p.Attention, rope.Context{})
		stringed.Attention.Cache = rapid.SampledFrom([]rope.Cache{rope.Rotated, rope.Raw}).Draw(t, "cache")
		want, _ := relative(p, func(i, j int) (float64, bool) {
			d := i - j
			if d >= int(s) {
				return float64(d - int(s) + int(w)), true
			}
			return float64(d), d >= 0
		})
		if d := distance(mustRun(t, stringed).Output, want); d > 1e-10 {
			t.Fatalf("STRING differs by %g", d)
		}

		leaky := p
		leaky.Attention.Cache = rope.Raw
		leaky.Attention.Bands = []rope.Band{
			{Start: 0, QueryScale: 1, KeyScale: 1},
			{Start: s, QueryScale: 1 / k, QueryOffset: float64(s) * (1 - 1/k), KeyScale: 1 / k},
		}
		want, _ = relative(p, func(i, j int) (float64, bool) {
			d := float64(i - j)
			if d >= float64(s) {
				return float64(s) + (d-float64(s))/k, true
			}
			return d, d >= 0
		})
		if d := distance(mustRun(t, leaky).Output, want); d > 1e-10 {
			t.Fatalf("leaky ReRoPE differs by %g", d)
		}
	})
}
