// The register-blocked product under Q·K^T and P·V, and the packing it reads.
#if defined(ROPE_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_PRODUCT_INL_H_
#undef ROPE_PRODUCT_INL_H_
#else
#define ROPE_PRODUCT_INL_H_
#endif

#include <cstring>

#include "element-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

// Two bfloat16 where a matrix of floats has one number, the first in the low half.
using Pairs = hn::Repartition<BFloat16, DF>;

// sum + a · b; of pairs, both products.
template <bool kPairs>
HWY_INLINE VF AddProduct(VF a, VF b, VF sum) {
  if constexpr (kPairs && kHasPairs) {
    const DF d;
    const Pairs dp;
    VF none = hn::Zero(d);
    return hn::ReorderWidenMulAccumulate(d, hn::BitCast(dp, a), hn::BitCast(dp, b), sum, none);
  } else {
    return hn::MulAdd(a, b, sum);
  }
}

// C[kRows][kVectors] = C * row_scale + A[kRows][depth] · B[depth][kVectors],
// or A · B alone when row_scale is null. Strides count floats; B's rows stand
// b_stride apart, so B is a packed panel or rows of a tensor of any type. With
// kPairs, each float of A and B is a pair, and T is float. The product is summed
// up by itself before C joins: a long sum in pieces is more exact than in one run.
template <size_t kRows, size_t kVectors, bool kPairs, typename T>
HWY_INLINE void Block(const float* HWY_RESTRICT a, size_t a_stride, const T* HWY_RESTRICT b,
                      size_t b_stride, size_t depth, const float* row_scale, float* HWY_RESTRICT c,
                      size_t c_stride) {
  const DF d;
  VF sum[kRows][kVectors];
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  for (size_t k = 0; k < depth; ++k) {
    VF bk[kVectors];
    for (size_t v = 0; v < kVectors; ++v) bk[v] = LoadFloats(d, b + k * b_stride + v * kLanes);
    for (size_t r = 0; r < kRows; ++r) {
      const VF ak = hn::Set(d, a[r * a_stride + k]);
      for (size_t v = 0; v < kVectors; ++v) sum[r][v] = AddProduct<kPairs>(ak, bk[v], sum[r][v]);
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectors; ++v) {
      float* at = c + r * c_stride + v * kLanes;
      if (row_scale != nullptr) {
        sum[r][v] = hn::MulAdd(hn::LoadU(d, at), hn::Set(d, row_scale[r]), sum[r][v]);
      }
      hn::StoreU(sum[r][v], d, at);
    }
  }
}

// Block for a number of vectors known at run time, 1 to kBlockVectors.
template <size_t kRows, bool kPairs, typename T>
HWY_NOINLINE void BlockOfRows(size_t vectors, const float* a, size_t a_stride, const T* b,
                              size_t b_stride, size_t depth, const float* row_scale, float* c,
                              size_t c_stride) {
  if constexpr (kBlockVectors >= 4) {
    if (vectors == 4) {
      return Block<kRows, 4, kPairs>(a, a_stride, b, b_stride, depth, row_scale, c, c_stride);
    }
    if (vectors == 3) {
      return Block<kRows, 3, kPairs>(a, a_stride, b, b_stride, depth, row_scale, c, c_stride);
    }
  }
  if (vectors == 2) {
    return Block<kRows, 2, kPairs>(a, a_stride, b, b_stride, depth, row_scale, c, c_stride);
  }
  Block<kRows, 1, kPairs>(a, a_stride, b, b_stride, depth, row_scale, c, c_stride);
}

// The same for a number of rows known at run time, 1 to kBlockRows.
template <bool kPairs, size_t kRows = kBlockRows, typename T>
HWY_INLINE void BlockOf(size_t rows, size_t vectors, const float* a, size_t a_stride, const T* b,
                        size_t b_stride, size_t depth, const float* row_scale, float* c,
                        size_t c_stride) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      return BlockOf<kPairs, kRows - 1>(rows, vectors, a, a_stride, b, b_stride, depth, row_scale,
                                        c, c_stride);
    }
  }
  BlockOfRows<kRows, kPairs>(vectors, a, a_stride, b, b_stride, depth, row_scale, c, c_stride);
}

// What the rows of a tile are multiplied by when they are packed: the scales of a cache of int8.
template <typename T>
struct PackedScales {
  const float* scales = nullptr;  // null for other types, and rows without

  HWY_INLINE float Of(size_t row) const {
    if constexpr (kIsInt8<T>) return scales[row];
    return 1.0f;
  }
};

// A packed matrix is a row of panels of kPanel columns, the last one narrower:
// columns are rounded up to whole vectors.
constexpr size_t PaddedColumns(size_t columns) { return (columns + kLanes - 1) / kLanes * kLanes; }

// Vectors in the panel that starts at `column` of a packed matrix.
HWY_INLINE size_t PanelVectors(size_t column, size_t columns) {
  const size_t left = (columns - column + kLanes - 1) / kLanes;
  return left < kBlockVectors ? left : kBlockVectors;
}

// What a packed matrix holds at a place: a number, or the bits of a pair of them.
template <bool kPairs, typename T>
HWY_INLINE float Unit(const T* row, size_t x, float scale) {
  const auto number = [&](size_t at) {
    return kIsInt8<T> ? ToFloat(row[at]) * scale : ToFloat(row[at]);
  };
  if constexpr (kPairs) {
    const BFloat16 pair[2] = {FromFloat<BFloat16>(number(2 * x)),
                              FromFloat<BFloat16>(number(2 * x + 1))};
    float bits;
    memcpy(&bits, pair, sizeof bits);
    return bits;
  } else {
    return number(x);
  }
}

#if HWY_TARGET != HWY_SCALAR
// A vector of them, from place x on.
template <bool kPairs, class D, typename T>
HWY_INLINE hn::Vec<D> LoadUnits(D d, const T* row, size_t x, float scale) {
  if constexpr (kPairs && std::is_same_v<T, BFloat16>) {
    return hn::BitCast(d, hn::LoadU(hn::Repartition<T, D>(), row + 2 * x));
  } else {
    const auto load = [&](size_t at) HWY_ATTR {
      if constexpr (kIsInt8<T>) return hn::Mul(LoadFloats(d, row + at), hn::Set(d, scale));
      return LoadFloats(d, row + at);
    };
    if constexpr (kPairs) {
      const hn::Repartition<BFloat16, D> dp;
      return hn::BitCast(d, hn::OrderedDemote2To(dp, load(2 * x), load(2 * x + hn::Lanes(d))));
    } else {
      return load(x);
    }
  }
}
#endif

// Writes 4 keys x 4 units of channels, transposed, to out[channel][key].
template <bool kPairs, typename T>
HWY_INLINE void Transpose4x4(const T* const* rows, const float* scales, size_t x,
                             float* HWY_RESTRICT out, size_t out_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (size_t i = 0; i < 4; ++i) {
    for (size_t y = 0; y < 4; ++y) {
      out[y * out_stride + i] = Unit<kPairs>(rows[i], x + y, scales[i]);
    }
  }
#else
  const hn::FixedTag<float, 4> d4;
  const hn::RepartitionToWide<decltype(d4)> d2;
  const auto r0 = LoadUnits<kPairs>(d4, rows[0], x, scales[0]);
  const auto r1 = LoadUnits<kPairs>(d4, rows[1], x, scales[1]);
  const auto r2 = LoadUnits<kPairs>(d4, rows[2], x, scales[2]);
  const auto r3 = LoadUnits<kPairs>(d4, rows[3], x, scales[3]);
  const auto a = hn::BitCast(d2, hn::InterleaveLower(d4, r0, r1));
  const auto b = hn::BitCast(d2, hn::InterleaveLower(d4, r2, r3));
  const auto c = hn::BitCast(d2, hn::InterleaveUpper(d4, r0, r1));
  const auto e = hn::BitCast(d2, hn::InterleaveUpper(d4, r2, r3));
  hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, a, b)), d4, out);
  hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, a, b)), d4, out + out_stride);
  hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, c, e)), d4, out + 2 * out_stride);
  hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, c, e)), d4, out + 3 * out_stride);
#endif
}

// Packs keys, `stride` apart, as the columns of a packed [channels][keys] matrix,
// of pairs of channels with kPairs, which `channels` then counts. Columns that pad
// the last vector are zero.
template <bool kPairs, typename T>
void PackTransposed(size_t keys, size_t channels, const T* from, size_t stride,
                    PackedScales<T> scale, float* HWY_RESTRICT out) {
  const auto row = [=](size_t j) { return from + j * stride; };
  for (size_t begin = 0; begin < keys; begin += kPanel) {
    const size_t width = PanelVectors(begin, keys) * kLanes;
    const size_t real = HWY_MIN(keys - begin, width);
    size_t n = 0;
    for (; n + 4 <= real; n += 4) {
      const T* rows[4] = {row(begin + n), row(begin + n + 1), row(begin + n + 2),
                          row(begin + n + 3)};
      const float scales[4] = {scale.Of(begin + n), scale.Of(begin + n + 1),
                               scale.Of(begin + n + 2), scale.Of(begin + n + 3)};
      size_t x = 0;
      for (; x + 4 <= channels; x += 4) {
        Transpose4x4<kPairs>(rows, scales, x, out + x * width + n, width);
      }
      for (; x < channels; ++x) {
        for (size_t i = 0; i < 4; ++i) out[x * width + n + i] = Unit<kPairs>(rows[i], x, scales[i]);
      }
    }
    for (; n < width; ++n) {
      const T* key = n < real ? row(begin + n) : nullptr;
      for (size_t x = 0; x < channels; ++x) {
        out[x * width + n] = key == nullptr ? 0.0f : Unit<kPairs>(key, x, scale.Of(begin + n));
      }
    }
    out += channels * width;
  }
}

// Packs value rows, `stride` apart, as a packed [keys][channels] matrix. Returns
// whether every number is finite.
template <typename T>
bool PackRows(size_t keys, size_t channels, const T* values, size_t stride, PackedScales<T> scale,
              float* HWY_RESTRICT out) {
  const DF d;
  // Stays 0 while all numbers are finite: x - x is 0 for finite x and NaN otherwise.
  VF non_finite = hn::Zero(d);
  for (size_t begin = 0; begin < channels; begin += kPanel) {
    const size_t vectors = PanelVectors(begin, channels);
    const size_t width = vectors * kLanes;
    for (size_t j = 0; j < keys; ++j) {
      const T* from = values + j * stride + begin;
      for (size_t v = 0; v < vectors; ++v) {
        const size_t left = channels - begin - v * kLanes;
        VF x = left >= kLanes ? LoadFloats(d, from + v * kLanes)
                              : LoadFloatsN(d, from + v * kLanes, left);
        if constexpr (kIsInt8<T>) x = hn::Mul(x, hn::Set(d, scale.Of(j)));
        non_finite = hn::Add(non_finite, hn::Sub(x, x));
        hn::StoreU(x, d, out + j * width + v * kLanes);
      }
    }
    out += keys * width;
  }
  return hn::AllTrue(d, hn::Eq(non_finite, hn::Zero(d)));
}

// The same as a packed [(keys + 1) / 2][channels] matrix of pairs: rows 2j and
// 2j + 1, zero after the last. Numbers count as they are when rounded to bfloat16.
template <typename T>
bool PackRowPairs(size_t keys, size_t channels, const T* values, size_t stride,
                  PackedScales<T> scale, float* HWY_RESTRICT out) {
  const DF d;
  VF non_finite = hn::Zero(d);
  for (size_t begin = 0; begin < channels; begin += kPanel) {
    const size_t vectors = PanelVectors(begin, channels);
    const size_t width = vectors * kLanes;
    for (size_t j = 0; j < keys; j += 2) {
      for (size_t v = 0; v < vectors; ++v) {
        const size_t left = channels - begin - v * kLanes;
        const size_t count = HWY_MIN(left, kLanes);
        const auto load = [&](size_t key) HWY_ATTR {
          const T* from = values + key * stride + begin + v * kLanes;
          VF x = left >= kLanes ? LoadFloats(d, from) : LoadFloatsN(d, from, count);
          if constexpr (kIsInt8<T>) x = hn::Mul(x, hn::Set(d, scale.Of(key)));
          if constexpr (std::is_same_v<T, BFloat16>) return x;
          return hn::PromoteTo(d, hn::DemoteTo(hn::Rebind<BFloat16, DF>(), x));
        };
        const VF a = load(j);
        const VF b = j + 1 < keys ? load(j + 1) : hn::Zero(d);
        non_finite = hn::Add(non_finite, hn::Add(hn::Sub(a, a), hn::Sub(b, b)));
        const hn::RebindToUnsigned<DF> du;
        const auto low = hn::ShiftRight<16>(hn::BitCast(du, a));
        hn::StoreU(hn::BitCast(d, hn::Or(low, hn::BitCast(du, b))), d,
                   out + j / 2 * width + v * kLanes);
      }
    }
    out += (keys + 1) / 2 * width;
  }
  return hn::AllTrue(d, hn::Eq(non_finite, hn::Zero(d)));
}

// Rounds numbers [begin, end) of a row, whose bounds are multiples of a vector, to
// bfloat16 and writes them to the row's front half: float i then is numbers 2i and 2i + 1.
HWY_INLINE void MakePairs(float* row, size_t begin, size_t end) {
  const DF d;
  const hn::Rebind<BFloat16, DF> dh;
  BFloat16* out = reinterpret_cast<BFloat16*>(row);
  for (size_t x = begin; x < end; x += kLanes) {
    hn::StoreU(hn::DemoteTo(dh, hn::LoadU(d, row + x)), dh, out + x);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_PRODUCT_INL_H_
