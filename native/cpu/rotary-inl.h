// The rotation of many heads, bound by memory: each head is read once and written once.
#if defined(ROPE_ROTARY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPE_ROTARY_INL_H_
#undef ROPE_ROTARY_INL_H_
#else
#define ROPE_ROTARY_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "angles-inl.h"
#include "divide.h"
#include "element-inl.h"
#include "hwy/cache_control.h"
#include "rotary.h"
#include "visible.h"
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

// Copies channels that are not rotated; with kStream whole vectors of them.
template <bool kStream, typename T>
HWY_INLINE void CopyRest(const T* in, size_t count, T* out) {
  if (count == 0 || in == out) return;
  if constexpr (kStream && kCanStream<T>) {
    const hn::FixedTag<T, kLanes> d;
    for (size_t x = 0; x < count; x += kLanes) hn::Stream(hn::LoadU(d, in + x), d, out + x);
  } else {
    memcpy(out, in, count * sizeof(T));
  }
}

// Turns channels x and pairs + x of the rotated part of kHeads heads, which stand `step` apart, by
// one row of angles: `pairs` cosines and as many sines.
template <int kHeads, bool kStream, typename T>
HWY_INLINE void TurnHalves(const T* in, int64_t step, const float* table, size_t pairs, T* out) {
  const DF d;
  size_t x = 0;
  for (; x + kLanes <= pairs; x += kLanes) {
    const VF c = hn::LoadU(d, table + x);
    const VF s = hn::LoadU(d, table + pairs + x);
    for (int h = 0; h < kHeads; ++h) {
      const VF a = LoadFloats(d, in + h * step + x);
      const VF b = LoadFloats(d, in + h * step + pairs + x);
      StoreRotated<kStream>(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, out + h * step + x);
      StoreRotated<kStream>(hn::MulAdd(a, s, hn::Mul(b, c)), d, out + h * step + pairs + x);
    }
  }
  for (; x < pairs; ++x) {
    for (int h = 0; h < kHeads; ++h) {
      const float a = ToFloat(in[h * step + x]);
      const float b = ToFloat(in[h * step + pairs + x]);
      out[h * step + x] = FromFloat<T>(a * table[x] - b * table[pairs + x]);
      out[h * step + pairs + x] = FromFloat<T>(b * table[x] + a * table[pairs + x]);
    }
  }
}

// The same of channels 2x and 2x + 1. `table` has the factors as Interleave leaves them.
template <int kHeads, bool kStream, typename T>
HWY_INLINE void TurnNeighbours(const T* in, int64_t step, const float* table, size_t pairs,
                               T* out) {
  const DF d;
  const size_t channels = 2 * pairs;
  size_t x = 0;
  // One lane has no neighbour.
  for (; kLanes > 1 && x + kLanes <= channels; x += kLanes) {
    const VF c = hn::LoadU(d, table + x);
    const VF s = hn::LoadU(d, table + channels + x);
    for (int h = 0; h < kHeads; ++h) {
      const VF own = LoadFloats(d, in + h * step + x);
      const VF other = hn::Reverse2(d, own);
      StoreRotated<kStream>(hn::MulAdd(other, s, hn::Mul(own, c)), d, out + h * step + x);
    }
  }
  for (; x < channels; x += 2) {
    for (int h = 0; h < kHeads; ++h) {
      const float a = ToFloat(in[h * step + x]);
      const float b = ToFloat(in[h * step + x + 1]);
      out[h * step + x] = FromFloat<T>(a * table[x] + b * table[channels + x]);
      out[h * step + x + 1] = FromFloat<T>(b * table[x + 1] + a * table[channels + x + 1]);
    }
  }
}

// Two neighbours of bfloat16 are one word, whose halves are float32 numbers but for zeros behind
// them: nothing is widened, and the angles are those of TurnHalves.
template <typename T>
inline constexpr bool kWords = std::is_same_v<T, BFloat16> && kLanes > 1;

// float32 rounded to the upper half of a word, to nearest even.
HWY_INLINE hn::Vec<hn::RebindToUnsigned<DF>> RoundedWord(DF d, VF v) {
  const hn::RebindToUnsigned<DF> du;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFFu)));
  const auto nan = hn::Or(bits, hn::Set(du, 0x400000u));
  (void)d;
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), nan, rounded);
}

template <int kHeads, bool kStream, typename T>
HWY_INLINE void TurnWords(const T* in, int64_t step, const float* table, size_t pairs, T* out) {
  const DF d;
  const hn::RebindToUnsigned<DF> du;
  const hn::FixedTag<T, 2 * kLanes> dt;
  const auto upper = hn::Set(du, 0xFFFF0000u);
  size_t x = 0;
  for (; x + kLanes <= pairs; x += kLanes) {
    const VF c = hn::LoadU(d, table + x);
    const VF s = hn::LoadU(d, table + pairs + x);
    for (int h = 0; h < kHeads; ++h) {
      const auto words = hn::BitCast(du, hn::LoadU(dt, in + h * step + 2 * x));
      const VF a = hn::BitCast(d, hn::ShiftLeft<16>(words));
      const VF b = hn::BitCast(d, hn::And(words, upper));
      const auto first = RoundedWord(d, hn::NegMulAdd(b, s, hn::Mul(a, c)));
      const auto second = RoundedWord(d, hn::MulAdd(a, s, hn::Mul(b, c)));
      const auto both = hn::BitCast(dt, hn::Or(hn::ShiftRight<16>(first), hn::And(second, upper)));
      T* to = out + h * step + 2 * x;
      kStream ? hn::Stream(both, dt, to) : hn::StoreU(both, dt, to);
    }
  }
  for (; x < pairs; ++x) {
    for (int h = 0; h < kHeads; ++h) {
      const float a = ToFloat(in[h * step + 2 * x]);
      const float b = ToFloat(in[h * step + 2 * x + 1]);
      out[h * step + 2 * x] = FromFloat<T>(a * table[x] - b * table[pairs + x]);
      out[h * step + 2 * x + 1] = FromFloat<T>(b * table[x] + a * table[pairs + x]);
    }
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
  static constexpr int64_t kRowsOfHead = 64;

 public:
  RotaryRun(const RotaryParams& params, const RotaryArgs<T>& args)
      : params_(params),
        args_(args),
        pairs_(params.frequencies.size()),
        shared_(args.positions.shared()),
        rows_(shared_ ? args.length : args.batch * args.length),
        row_floats_(static_cast<int64_t>(Interleaves() ? 4 * pairs_ : 2 * pairs_)),
        begin_(static_cast<size_t>(params.rotary_offset)),
        end_(begin_ + 2 * pairs_),
        channels_(static_cast<size_t>(args.head_size)),
        large_(Large()) {}

  bool operator()(Host& host) const {
    const int64_t per_token = (args_.query.heads + args_.key.heads) * args_.head_size;
    const int64_t inner = shared_ ? args_.batch : 1;
    if (rows_ == 0 || inner == 0 || per_token == 0) return true;
    // A task is long beside waking a thread, and there are enough of them to share.
    constexpr int64_t kPerTask = 64 * 1024;
    const int64_t together = std::clamp<int64_t>(kPerTask / per_token, 1, inner);
    const int64_t per_task = RowsPerTask(kPerTask / (per_token * together));
    const int64_t groups = DivideUp(inner, together);
    const int64_t tasks = DivideUp(rows_, per_task) * groups;
    WorkspacePool pool(host, static_cast<size_t>(std::min(per_task, TableRows()) * row_floats_));
    ForEach(
        host, static_cast<size_t>(tasks),
        [&](size_t task) {
          const WorkspacePool::Lease table(pool);
          if (table.data() == nullptr) return;
          const int64_t first = static_cast<int64_t>(task) / groups * per_task;
          const int64_t group = static_cast<int64_t>(task) % groups * together;
          RunTask({first, std::min(rows_, first + per_task)},
                  {group, std::min(inner, group + together)}, table.data());
        },
        rows_ * inner * per_token <= kPerTask);
    return !pool.exhausted();
  }

 private:
  // Where rows of a head stand side by side, many of them go together, so that memory is read and
  // written in long pieces.
  int64_t RowsPerTask(int64_t wanted) const {
    constexpr int64_t kTasks = 16;
    if (by_head()) wanted = std::max(wanted, std::min<int64_t>(rows_ / kTasks, kRowsOfHead));
    return std::clamp<int64_t>(wanted, 1, rows_);
  }

  // Rows of angles that are made at a time: few enough to stay near while all heads are turned.
  int64_t TableRows() const {
    constexpr int64_t kFloats = 4096;
    return by_head() ? kRowsOfHead : std::max<int64_t>(1, kFloats / row_floats_);
  }

  // Whether angles are wanted for each channel, not for each pair.
  bool Interleaves() const { return params_.interleaved && !kWords<T>; }

  bool by_head() const { return params_.format == TensorFormat::kBhsd; }

  // Rows of angles, with these rows of the batch where they share them.
  void RunTask(Range rows, Range batch, float* table) const {
    for (Range block = rows; block.begin < rows.end; block.begin = block.end) {
      block.end = std::min(rows.end, block.begin + TableRows());
      Fill(block, table);
      for (int64_t b = batch.begin; b < batch.end; ++b) {
        Turn(args_.query, b, block, table);
        Turn(args_.key, b, block, table);
      }
    }
  }

  // Whether outputs are so large that they will not be in a cache when they are read.
  bool Large() const {
    constexpr int64_t kLarge = 16 << 20;  // bytes
    const int64_t heads = args_.query.heads + args_.key.heads;
    return args_.batch * args_.length * heads * args_.head_size >=
           kLarge / static_cast<int64_t>(sizeof(T));
  }

  // Whether an output is written past the caches, which then is not read before. Every vector of
  // it has to be aligned.
  bool Streams(const RotaryTensor<T>& tensor) const {
    // Words are written by vectors twice as long.
    const size_t vector = kLanes * sizeof(T) * (kWords<T> && params_.interleaved ? 2 : 1);
    const auto aligned = [&](size_t elements) { return elements * sizeof(T) % vector == 0; };
    return large_ && tensor.from.data != tensor.to.data &&
           reinterpret_cast<uintptr_t>(tensor.to.data) % vector == 0 && aligned(channels_) &&
           aligned(begin_) && aligned(params_.interleaved ? 2 * pairs_ : pairs_);
  }

  // The batch row and the place of row r of the angles; of shared positions those of row 0.
  int64_t BatchOf(int64_t row) const { return shared_ ? 0 : row / args_.length; }
  int64_t PlaceOf(int64_t row) const { return shared_ ? row : row % args_.length; }

  void Fill(Range rows, float* table) const {
    const RotaryPositions& positions = args_.positions;
    for (int64_t row = rows.begin; row < rows.end; ++row, table += row_floats_) {
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
      if (Interleaves()) Interleave(pairs_, table);
    }
  }

  // All heads of some rows.
  void Turn(const RotaryTensor<T>& tensor, int64_t batch, Range rows, const float* table) const {
    if (tensor.heads == 0) return;
    const bool streams = Streams(tensor);
    // The rows of each row of the batch.
    for (Range part = rows; part.begin < rows.end; part.begin = part.end) {
      const int64_t b = shared_ ? batch : BatchOf(part.begin);
      const int64_t place = PlaceOf(part.begin);
      part.end = std::min(rows.end, part.begin + args_.length - place);
      const float* angles = table + (part.begin - rows.begin) * row_floats_;
      if (params_.interleaved) {
        streams ? TurnPart<true, true>(tensor, b, place, part.size(), angles)
                : TurnPart<true, false>(tensor, b, place, part.size(), angles);
      } else {
        streams ? TurnPart<false, true>(tensor, b, place, part.size(), angles)
                : TurnPart<false, false>(tensor, b, place, part.size(), angles);
      }
    }
    if (streams) hwy::FlushStream();
  }

  // Some rows of one row of the batch. Where heads stand side by side a row goes first, where rows
  // do, a head.
  template <bool kInterleaved, bool kStream>
  HWY_INLINE void TurnPart(const RotaryTensor<T>& tensor, int64_t batch, int64_t place,
                           int64_t rows, const float* table) const {
    const int64_t outer = by_head() ? tensor.heads : rows;
    const int64_t inner = by_head() ? rows : tensor.heads;
    const int64_t step = by_head() ? tensor.from.row_stride : tensor.from.head_stride;
    const int64_t angles_step = by_head() ? row_floats_ : 0;
    for (int64_t o = 0; o < outer; ++o) {
      const int64_t head = by_head() ? o : 0;
      const int64_t row = by_head() ? 0 : o;
      const T* in = tensor.from.At(batch, head, place + row);
      T* out = tensor.to.At(batch, head, place + row);
      const float* angles = table + row * row_floats_;
      int64_t i = 0;
      // Heads of one token share its angles. From memory heads are read one after the other.
      constexpr int kTogether = 4;
      for (; !by_head() && !large_ && i + kTogether <= inner; i += kTogether) {
        TurnHeads<kTogether, kInterleaved, kStream>(in, step, angles, out);
        in += kTogether * step;
        out += kTogether * step;
      }
      for (; i < inner; ++i, in += step, out += step, angles += angles_step) {
        TurnHeads<1, kInterleaved, kStream>(in, step, angles, out);
      }
    }
  }

  template <int kHeads, bool kInterleaved, bool kStream>
  HWY_INLINE void TurnHeads(const T* in, int64_t step, const float* angles, T* out) const {
    for (int h = 0; h < kHeads; ++h) {
      CopyRest<kStream>(in + h * step, begin_, out + h * step);
      CopyRest<kStream>(in + h * step + end_, channels_ - end_, out + h * step + end_);
    }
    if constexpr (kInterleaved && kWords<T>) {
      TurnWords<kHeads, kStream>(in + begin_, step, angles, pairs_, out + begin_);
    } else if constexpr (kInterleaved) {
      TurnNeighbours<kHeads, kStream>(in + begin_, step, angles, pairs_, out + begin_);
    } else {
      TurnHalves<kHeads, kStream>(in + begin_, step, angles, pairs_, out + begin_);
    }
  }

  const RotaryParams& params_;
  const RotaryArgs<T>& args_;
  const size_t pairs_;
  const bool shared_;
  const int64_t rows_;  // of angles: places, or places of all batch rows
  const int64_t row_floats_;
  const size_t begin_, end_, channels_;  // of a head: the rotated part, and all
  const bool large_;
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
