// The rotation of many heads, bound by memory: each head is read once and written once.
#if defined(ROPE_ROTARY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_ROTARY_INL_H_
#undef ROPE_ROTARY_INL_H_
#else
#define ROPE_ROTARY_INL_H_
#endif

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "angles-inl.h"
#include "divide.h"
#include "element-inl.h"
#include "hwy/cache_control.h"
#include "rotary.h"
#include "workspace.h"

HWY_BEFORE_NAMESPACE();
namespace rope {
namespace HWY_NAMESPACE {

// Stores past the caches take whole registers.
template <typename T>
inline constexpr bool kCanStream = kLanes * sizeof(T) >= 16;

// Stores numbers at a place that is a multiple of their vector, past the caches with kStream.
template <bool kStream, typename T>
HWY_INLINE void StoreRotated(VF v, DF d, T* to) {
  if constexpr (!kStream || !kCanStream<T>) {
    StoreFloats(v, d, to);
  } else if constexpr (kIsFloat<T>) {
    hn::Stream(v, d, to);
  } else {
    hn::Stream(Narrow<T>(d, v), hn::Rebind<T, DF>(), to);
  }
}

// Turns channels x and pairs + x of the rotated part. `table` has `pairs` cosines and as many
// sines.
template <bool kStream, typename T>
HWY_INLINE void TurnHalves(const T* in, const float* table, size_t pairs, T* out) {
  const DF d;
  size_t x = 0;
  for (; x + kLanes <= pairs; x += kLanes) {
    const VF a = LoadFloats(d, in + x);
    const VF b = LoadFloats(d, in + pairs + x);
    const VF c = hn::LoadU(d, table + x);
    const VF s = hn::LoadU(d, table + pairs + x);
    StoreRotated<kStream>(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, out + x);
    StoreRotated<kStream>(hn::MulAdd(a, s, hn::Mul(b, c)), d, out + pairs + x);
  }
  for (; x < pairs; ++x) {
    const float a = ToFloat(in[x]);
    const float b = ToFloat(in[pairs + x]);
    out[x] = FromFloat<T>(a * table[x] - b * table[pairs + x]);
    out[pairs + x] = FromFloat<T>(b * table[x] + a * table[pairs + x]);
  }
}

// Turns channels 2x and 2x + 1. `table` has the factors as Interleave leaves them.
template <bool kStream, typename T>
HWY_INLINE void TurnNeighbours(const T* in, const float* table, size_t pairs, T* out) {
  const DF d;
  const size_t channels = 2 * pairs;
  size_t x = 0;
  for (; x + kLanes <= channels; x += kLanes) {
    const VF own = LoadFloats(d, in + x);
    const VF other = hn::Reverse2(d, own);
    const VF c = hn::LoadU(d, table + x);
    const VF s = hn::LoadU(d, table + channels + x);
    StoreRotated<kStream>(hn::MulAdd(other, s, hn::Mul(own, c)), d, out + x);
  }
  for (; x < channels; x += 2) {
    const float a = ToFloat(in[x]);
    const float b = ToFloat(in[x + 1]);
    out[x] = FromFloat<T>(a * table[x] + b * table[channels + x]);
    out[x + 1] = FromFloat<T>(b * table[x + 1] + a * table[channels + x + 1]);
  }
}

// Gives each channel a cosine and the sine that its neighbour is multiplied by. `row` has pairs
// cosines and sines and room for twice as many.
inline void Interleave(size_t pairs, float* row) {
  for (size_t x = pairs; x-- > 0;) {
    const float sine = row[pairs + x];
    row[2 * pairs + 2 * x] = -sine;
    row[2 * pairs + 2 * x + 1] = sine;
  }
  for (size_t x = pairs; x-- > 0;) row[2 * x] = row[2 * x + 1] = row[x];
}

// One run on one target.
template <typename T>
class RotaryRun {
 public:
  RotaryRun(const RotaryParams& params, const RotaryArgs<T>& args)
      : params_(params),
        args_(args),
        pairs_(params.frequencies.size()),
        shared_(args.positions.shared()),
        rows_(shared_ ? args.length : args.batch * args.length),
        row_floats_(static_cast<int64_t>(params.interleaved ? 4 * pairs_ : 2 * pairs_)),
        streams_(Streams(args.query) && Streams(args.key)) {}

  bool operator()(Host& host) const {
    const int64_t per_token = (args_.query.heads + args_.key.heads) * args_.head_size;
    const int64_t inner = shared_ ? args_.batch : 1;
    if (rows_ == 0 || inner == 0 || per_token == 0) return true;
    // A task is long beside waking a thread, and there are enough of them to share.
    constexpr int64_t kPerTask = 64 * 1024;
    const int64_t together = std::clamp<int64_t>(kPerTask / per_token, 1, inner);
    const int64_t per_task = std::clamp<int64_t>(kPerTask / (per_token * together), 1, rows_);
    const int64_t groups = DivideUp(inner, together);
    const int64_t tasks = DivideUp(rows_, per_task) * groups;
    const int64_t at_once = std::min(per_task, TableRows());
    WorkspacePool pool(host, static_cast<size_t>(at_once * row_floats_));
    std::atomic<bool> done{true};
    ForEach(
        host, static_cast<size_t>(tasks),
        [&](size_t task) {
          const WorkspacePool::Lease table(pool);
          if (table.data() == nullptr) {
            done = false;
            return;
          }
          const int64_t first = static_cast<int64_t>(task) / groups * per_task;
          const int64_t group = static_cast<int64_t>(task) % groups * together;
          const int64_t end = std::min(rows_, first + per_task);
          for (int64_t row = first; row < end; row += at_once) {
            const int64_t last = std::min(end, row + at_once);
            Fill(row, last, table.data());
            for (int64_t b = group; b < std::min(inner, group + together); ++b) {
              Turn(args_.query, b, row, last, table.data());
              Turn(args_.key, b, row, last, table.data());
            }
          }
          if (streams_) hwy::FlushStream();
        },
        rows_ * inner * per_token <= kPerTask);
    return done;
  }

 private:
  // Rows of angles that are made at a time: they stay in L1 while all heads are turned by them.
  int64_t TableRows() const {
    constexpr int64_t kFloats = 4096;
    return std::max<int64_t>(1, kFloats / row_floats_);
  }

  // Whether an output is so large that it will not be in a cache when it is read, and every
  // vector of it is aligned. Written past the caches it is not read before.
  bool Streams(const RotaryTensor<T>& tensor) const {
    constexpr int64_t kLarge = 16 << 20;  // bytes
    constexpr int64_t kVector = static_cast<int64_t>(kLanes * sizeof(T));
    if (tensor.heads == 0) return true;
    const int64_t element = static_cast<int64_t>(sizeof(T));
    const auto aligned = [&](int64_t elements) { return elements * element % kVector == 0; };
    return tensor.from.data != tensor.to.data &&
           args_.batch * args_.length * tensor.heads * args_.head_size * element >= kLarge &&
           reinterpret_cast<uintptr_t>(tensor.to.data) % static_cast<uintptr_t>(kVector) == 0 &&
           aligned(args_.head_size) && aligned(params_.rotary_offset) &&
           (params_.interleaved || aligned(static_cast<int64_t>(pairs_)));
  }

  // The batch row and the place of row r of the angles; of shared positions those of row 0.
  int64_t BatchOf(int64_t row) const { return shared_ ? 0 : row / args_.length; }
  int64_t PlaceOf(int64_t row) const { return shared_ ? row : row % args_.length; }

  void Fill(int64_t first, int64_t last, float* table) const {
    const RotaryPositions& positions = args_.positions;
    for (int64_t row = first; row < last; ++row, table += row_floats_) {
      const int64_t batch = BatchOf(row);
      const int64_t place = PlaceOf(row);
      if (params_.position_axes.empty()) {
        FillRow(params_.frequencies, static_cast<double>(positions.At(batch, place)),
                params_.exact_angles, params_.gain, table);
      } else {
        const auto axis = [&](int64_t a) { return positions.AtAxis(batch, place, a); };
        FillRowOfAxes(params_.frequencies, params_.position_axes, axis, params_.exact_angles,
                      params_.gain, table);
      }
      if (params_.inverse) {
        for (size_t x = pairs_; x < 2 * pairs_; ++x) table[x] = -table[x];
      }
      if (params_.interleaved) Interleave(pairs_, table);
    }
  }

  // All heads of some rows. Where heads stand side by side a row goes first, where rows do, a head.
  void Turn(const RotaryTensor<T>& tensor, int64_t batch, int64_t first, int64_t last,
            const float* table) const {
    const auto turn = [&](int64_t row, int64_t head) HWY_ATTR {
      const int64_t b = shared_ ? batch : BatchOf(first + row);
      const int64_t place = PlaceOf(first + row);
      TurnHead(tensor.from.At(b, head, place), table + row * row_floats_,
               tensor.to.At(b, head, place));
    };
    const int64_t rows = last - first;
    if (params_.format == TensorFormat::kBhsd) {
      for (int64_t head = 0; head < tensor.heads; ++head) {
        for (int64_t row = 0; row < rows; ++row) turn(row, head);
      }
    } else {
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t head = 0; head < tensor.heads; ++head) turn(row, head);
      }
    }
  }

  HWY_INLINE void TurnHead(const T* in, const float* table, T* out) const {
    const size_t begin = static_cast<size_t>(params_.rotary_offset);
    const size_t end = begin + 2 * pairs_;
    const size_t channels = static_cast<size_t>(args_.head_size);
    if (begin > 0) Convert(in, begin, out);
    if (end < channels) Convert(in + end, channels - end, out + end);
    in += begin;
    out += begin;
    if (params_.interleaved) {
      streams_ ? TurnNeighbours<true>(in, table, pairs_, out)
               : TurnNeighbours<false>(in, table, pairs_, out);
    } else {
      streams_ ? TurnHalves<true>(in, table, pairs_, out)
               : TurnHalves<false>(in, table, pairs_, out);
    }
  }

  const RotaryParams& params_;
  const RotaryArgs<T>& args_;
  const size_t pairs_;
  const bool shared_;
  const int64_t rows_;  // of angles: places, or places of all batch rows
  const int64_t row_floats_;
  const bool streams_;
};

// Computes one run on this target.
template <typename T>
bool RunRotaryOnTarget(const RotaryParams& params, const RotaryArgs<T>& args, Host& host) {
  return RotaryRun<T>(params, args)(host);
}

}  // namespace HWY_NAMESPACE
}  // namespace rope
HWY_AFTER_NAMESPACE();

#endif  // ROPE_ROTARY_INL_H_
