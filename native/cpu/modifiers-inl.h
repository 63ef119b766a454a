// What happens to a score between the product and the softmax: scale, bias,
// softcap, bias.
#if defined(ROPE_MODIFIERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_MODIFIERS_INL_H_
#undef ROPE_MODIFIERS_INL_H_
#else
#define ROPE_MODIFIERS_INL_H_
#endif

#include "attention.h"
#include "element-inl.h"
#include "softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

// tanh, relative error below 2.5e-7; NaN for NaN.
HWY_INLINE VF Tanh(DF d, VF x) {
  const VF one = hn::Set(d, 1.0f);
  const VF size = hn::Abs(x);
  // x + x^3 * q(x^2) for |x| <= 0.625; q is the minimax fit, off by 9e-9.
  const VF u = hn::Mul(x, x);
  VF q = hn::Set(d, -5.704985932e-03f);
  q = hn::MulAdd(q, u, hn::Set(d, 2.063908614e-02f));
  q = hn::MulAdd(q, u, hn::Set(d, -5.373971537e-02f));
  q = hn::MulAdd(q, u, hn::Set(d, 1.333144158e-01f));
  q = hn::MulAdd(q, u, hn::Set(d, -3.333328068e-01f));
  const VF near = hn::MulAdd(hn::Mul(x, u), q, x);
  const VF t = ExpNonPositive(d, hn::Mul(size, hn::Set(d, -2.0f)));
  const VF far = hn::CopySign(hn::Div(hn::Sub(one, t), hn::Add(one, t)), x);
  return hn::IfThenElse(hn::Le(size, hn::Set(d, 0.625f)), near, far);
}

template <typename T>
class ScoreModifiers {
 public:
  static constexpr size_t kBuffers = 2;  // of a tile's keys each

  ScoreModifiers(const AttentionParams& params, const AttentionArgs<T>& args, float scale,
                 float* memory, size_t tile_keys)
      : args_(args),
        scale_(scale),
        softcap_(params.softcap),
        before_(args.bias_before_softcap.data == nullptr ? nullptr : memory),
        after_(args.bias.data == nullptr ? nullptr : memory + tile_keys) {}

  // Whether a run needs more than the scale, which the softmax applies itself.
  static bool Any(const AttentionParams& params, const AttentionArgs<T>& args) {
    return params.softcap > 0 || args.bias.data != nullptr ||
           args.bias_before_softcap.data != nullptr;
  }

  // Turns the products [begin, end) of a row, columns of the tile, into scores.
  // Bounds are multiples of a vector. Where a bias hides keys, the mask without them is
  // written to `shown`.
  void Apply(int64_t batch, int64_t head, int64_t place, Range tile, size_t begin, size_t end,
             float* HWY_RESTRICT scores, RowMask& mask, float* shown) {
    Load(args_.bias_before_softcap, batch, head, place, tile, begin, end, before_);
    Load(args_.bias, batch, head, place, tile, begin, end, after_);
    const DF d;
    const VF scale = hn::Set(d, scale_);
    const VF cap = hn::Set(d, softcap_);
    const VF over_cap = hn::Set(d, 1.0f / softcap_);
    const VF infinity = hn::Set(d, kNegativeInfinity);
    auto hidden = hn::MaskFalse(d);
    for (size_t c = begin; c < end; c += kLanes) {
      VF s = hn::Mul(hn::LoadU(d, scores + c), scale);
      if (before_ != nullptr) {
        const VF bias = hn::LoadU(d, before_ + c);
        hidden = hn::Or(hidden, hn::Eq(bias, infinity));
        s = hn::Add(s, bias);
      }
      if (softcap_ > 0) s = hn::Mul(Tanh(d, hn::Mul(s, over_cap)), cap);
      if (after_ != nullptr) {
        const VF bias = hn::LoadU(d, after_ + c);
        hidden = hn::Or(hidden, hn::Eq(bias, infinity));
        s = hn::Add(s, bias);
      }
      hn::StoreU(s, d, scores + c);
    }
    if (hn::AllFalse(d, hidden)) return;
    for (size_t c = begin; c < end; ++c) {
      const bool off = (before_ != nullptr && before_[c] == kNegativeInfinity) ||
                       (after_ != nullptr && after_[c] == kNegativeInfinity);
      shown[c] = off ? 0.0f : mask.shown == nullptr ? 1.0f : mask.shown[c];
    }
    mask.shown = shown;
  }

 private:
  // Puts the biases of columns [begin, end) to the same places of `out`.
  static void Load(const Bias<T>& bias, int64_t batch, int64_t head, int64_t place, Range tile,
                   size_t begin, size_t end, float* out) {
    if (out == nullptr) return;
    const size_t real = HWY_MIN(end, static_cast<size_t>(tile.size()));
    const T* from = bias.At(batch, head, place, tile.begin);
    if (bias.key_stride == 0) {
      std::fill(out + begin, out + real, ToFloat(*from));
    } else {
      Convert(from + begin, real - begin, out + begin);
    }
    std::fill(out + real, out + end, 0.0f);
  }

  const AttentionArgs<T>& args_;
  const float scale_;
  const float softcap_;
  float* const before_;  // a row's bias before the softcap, null if there is none
  float* const after_;   // and the one after it
};

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_MODIFIERS_INL_H_
