// What a block on tensor cores has in shared memory: its queries, a tile of keys
// and one of values, and how they come there.
#ifndef ROPE_CUDA_TENSOR_TILES_H_
#define ROPE_CUDA_TENSOR_TILES_H_

#include "scores.h"
#include "tile_shapes.h"
#include "wgmma.h"

namespace rope::cuda {

// Rows of numbers of type T. ldmatrix reads the same chunk of eight rows at once: rows are eight
// numbers longer than a head, which puts the eight chunks into different banks. Warpgroups read
// rows in squares (wgmma.h), those of eight rows one after the other, and have two stages of
// tiles: one is filled while the other is read. Zeros stand behind the last row and the last
// channel. A float32 number that T does not hold stands as two numbers of T: the rounded one, and
// its residual in a tile of residuals.
template <typename T, const TileShape& kShape>
class TensorTiles {
 public:
  static constexpr int kThreads = kShape.threads;
  static constexpr int kRows = kShape.rows;
  static constexpr int kKeys = kShape.keys;
  static constexpr int kChannels = kShape.channels;
  static constexpr bool kSquares = kShape.warpgroups;
  static constexpr int kKeyStages = kShape.warpgroups || kShape.ahead ? 2 : 1;
  static constexpr int kValueStages = kShape.warpgroups ? 2 : 1;
  // Bytes of a row. In squares it is an eighth of eight rows.
  static constexpr int kPitch = static_cast<int>(sizeof(T)) * (kChannels + (kSquares ? 0 : kChunk));
  static constexpr int kTileBytes = kKeys * kPitch;

  // Places in shared memory, in bytes; those of tiles are stage 0's.
  static constexpr int kQueries = 0;
  static constexpr int kKeyTile = kQueries + kRows * kPitch;
  static constexpr int kValueTile = kKeyTile + kKeyStages * kTileBytes;
  static constexpr int kQueryResiduals = kValueTile + kValueStages * kTileBytes;
  static constexpr int kBehindQueries = kQueryResiduals + kRows * kPitch;
  // A decoding block, whose tiles have no residuals but for the last one's new keys, has them where
  // values come later: so five blocks fit a processor instead of three.
  static constexpr bool kResidualsInValues = kShape.residuals && kShape.threads == 32;
  static constexpr int kKeyResiduals = kResidualsInValues ? kValueTile : kBehindQueries;

  static constexpr int64_t SharedFloats() {
    int bytes = kShape.residuals ? kBehindQueries : kQueryResiduals;
    if (kShape.residuals && !kResidualsInValues) bytes += kKeyStages * kTileBytes;
    return bytes / static_cast<int64_t>(sizeof(float));
  }

  ROPE_DEVICE TensorTiles(const Call<T>& call, const Task& task)
      : call_(call), task_(task), past_(call.past(task.batch)) {}

  // Whether queries and weights have residuals.
  static constexpr bool residuals() { return kShape.residuals; }

  // Whether keys of a tile have residuals.
  ROPE_DEVICE bool HaveResiduals(Range tile) const {
    if (!residuals() || call_.fast) return false;
    if (call_.caches.kind == CacheKind::kInt8 && tile.begin < first_new_key()) return true;
    if (call_.raw_cache) return call_.rotation.pairs > 0;
    return call_.new_key_residual.data != nullptr && tile.end > first_new_key();
  }

  // Whether the residuals of a tile's keys stand where its values come.
  ROPE_DEVICE bool ResidualsInValues(Range tile) const {
    return kResidualsInValues && HaveResiduals(tile);
  }

  // Puts the block's queries there, as a band has them.
  template <typename Block>
  ROPE_DEVICE void StoreQueries(Block& block, int64_t band) const {
    if (2 * call_.rotation.pairs == kChannels && RotatesHalves(call_) &&
        StandsInChunks(call_.query, call_.head_size)) {
      return StoreHalves(block, band);
    }
    block.Lanes([&](int thread) {
      ROPE_ROLLED
      for (int i = thread; i < kRows * kChunks; i += kThreads) {
        float numbers[kChunk];
        QueryChunk(call_, task_, i / kChunks, band, i % kChunks * kChunk, numbers);
        StoreNumbers(block, thread, i, kQueries, residuals() ? kQueryResiduals : -1, numbers);
      }
    });
  }

  // Whether the keys of a tile are copied as they stand. They are not where keys are rotated
  // first, where the cached ones have another type, and where the tile has both cached keys and new
  // ones in another tensor, or cached ones from both ends of a ring.
  ROPE_DEVICE bool CopiesKeys(Range tile) const {
    const bool apart = call_.new_key.data != nullptr || call_.new_key_residual.data != nullptr;
    return call_.copies_keys && HasOneType(tile, first_new_key()) &&
           (!apart || !Straddles(tile, first_new_key()));
  }

  // Starts to copy the keys of a tile, and their residuals.
  template <typename Block>
  ROPE_DEVICE void CopyKeys(Block& block, Range tile, int stage = 0) const {
    const int to = stage * kTileBytes;
    CopyRows(block, kKeyTile + to, call_.cached_key, call_.new_key, first_new_key(), tile,
             call_.head_size);
    if (!HaveResiduals(tile)) return;
    CopyRows(block, kKeyResiduals + to, call_.cached_key, call_.new_key_residual, first_new_key(),
             tile, call_.head_size);
  }

  // Puts the keys of a tile there that CopyKeys does not take: one by one, rotated if raw.
  template <typename Block>
  ROPE_DEVICE void StoreKeys(Block& block, Range tile, int32_t map, int stage = 0) const {
    const int to = stage * kTileBytes;
    const int residuals = HaveResiduals(tile) ? kKeyResiduals + to : -1;
    block.Lanes([&](int thread) {
      ROPE_ROLLED
      for (int i = thread; i < kKeys * kChunks; i += kThreads) {
        const int64_t key = tile.begin + i / kChunks;
        const int c = i % kChunks * kChunk;
        float numbers[kChunk] = {};
        if (key < tile.end && c < call_.head_size) {
          KeyChunk<!kShape.warpgroups>(call_, task_, key, map, c, numbers);
        }
        StoreNumbers(block, thread, i, kKeyTile + to, residuals, numbers);
      }
    });
  }

  // Starts to copy the values of a tile; zeros stand where it has none.
  template <typename Block>
  ROPE_DEVICE void StartValues(Block& block, Range tile, int stage = 0) const {
    const int to = kValueTile + stage * kTileBytes;
    if (call_.copies_values && HasOneType(tile, past_) &&
        (call_.new_value.data == nullptr || !Straddles(tile, past_))) {
      return CopyRows(block, to, call_.cached_value, call_.new_value, past_, tile,
                      call_.v_head_size);
    }
    block.Lanes([&](int thread) {
      ROPE_ROLLED
      for (int i = thread; i < kKeys * kChunks; i += kThreads) {
        const int64_t key = tile.begin + i / kChunks;
        const int c = i % kChunks * kChunk;
        float numbers[kChunk] = {};
        if (key < tile.end) ValueRow(call_, task_, key).Load(c, numbers);
        StoreNumbers(block, thread, i, to, -1, numbers);
      }
    });
  }

 private:
  static constexpr int kChunks = kChannels / kChunk;  // of a row

  // The same where the two halves of a head are rotated with one another: a thread makes a chunk of
  // either, of two rows at a time, so that their loads wait together.
  template <typename Block>
  ROPE_DEVICE void StoreHalves(Block& block, int64_t band) const {
    constexpr int kHalf = kChunks / 2;
    constexpr int kStep = kThreads / kHalf;
    static_assert(kThreads % kHalf == 0 && kRows % (2 * kStep) == 0);
    const int32_t table = call_.query_angles.of_band[band];
    block.Lanes([&](int thread) {
      const int chunk = thread % kHalf;
      ROPE_ROLLED
      for (int row = thread / kHalf; row < kRows; row += 2 * kStep) {
        float numbers[2][2][kChunk];
        ROPE_UNROLL
        for (int i = 0; i < 2; ++i) {
          QueryHalves(call_, task_, row + i * kStep, table, chunk * kChunk, numbers[i][0],
                      numbers[i][1]);
        }
        ROPE_UNROLL
        for (int i = 0; i < 4; ++i) {
          const int to = (row + i / 2 * kStep) * kChunks + chunk + i % 2 * kHalf;
          StoreNumbers(block, thread, to, kQueries, residuals() ? kQueryResiduals : -1,
                       numbers[i / 2][i % 2]);
        }
      }
    });
  }

  // Of a tile's i-th chunk. Eight rows further on it is 8 * kPitch more.
  ROPE_DEVICE static int PlaceOf(int i) {
    const int row = i / kChunks;
    const int chunk = i % kChunks;
    constexpr int kBytes = kChunk * static_cast<int>(sizeof(T));
    if (!kSquares) return row * kPitch + chunk * kBytes;
    constexpr int kAcross = kSquareRowBytes / kBytes;
    return row / kSquareRows * (kSquareRows * kPitch) + chunk / kAcross * kSquareBytes +
           row % kSquareRows * kSquareRowBytes + (chunk ^ row) % kAcross * kBytes;
  }

  // Not kept: warpgroups have no register for it.
  ROPE_DEVICE int64_t first_new_key() const { return call_.all_new ? 0 : past_; }

  // Whether rows of a tile do not stand one behind the other. New ones, which begin at an index,
  // are apart from a ring.
  ROPE_DEVICE bool Straddles(Range tile, int64_t first_new) const {
    const auto cut = [&](int64_t index) { return tile.begin < index && tile.end > index; };
    const Ring& ring = call_.ring;
    if (tile.begin >= first_new) return false;
    return cut(first_new) ||
           (ring.Turn(task_.batch) > 0 && (cut(ring.first) || cut(ring.Split(task_.batch))));
  }

  // Whether a tile's keys, and its values, all have type T.
  ROPE_DEVICE bool HasOneType(Range tile, int64_t first_new) const {
    return call_.caches.kind == CacheKind::kSame || tile.begin >= first_new;
  }

  // Starts to copy the rows of a tile: cached ones, or new ones where those are in another tensor.
  template <typename Block, typename New>
  ROPE_DEVICE void CopyRows(Block& block, int to, const CachedTensor& cached_rows,
                            const Rows<New>& new_rows, int64_t first_new, Range tile,
                            int64_t size) const {
    const Rows<const T> cached = Typed<T>(cached_rows.numbers);
    static_assert(kThreads % kChunks == 0, "a thread has the same chunk of several rows");
    constexpr int kStep = kThreads / kChunks;
    static_assert(!kSquares || kStep % kSquareRows == 0, "at the same place of several squares");
    const bool apart = new_rows.data != nullptr && tile.begin >= first_new;
    const T* first = apart ? new_rows.At(task_.batch, task_.kv_head, tile.begin - first_new)
                           : cached.At(task_.batch, task_.kv_head,
                                       call_.ring.CachedRow(task_.batch, tile.begin));
    const int64_t stride = apart ? new_rows.row_stride : cached.row_stride;
    block.Lanes([&](int thread) {
      const int c = thread % kChunks * kChunk;
      const int begin = thread / kChunks;
      const int end = c < size ? static_cast<int>(tile.size()) : 0;
      const T* from = first + begin * stride + c;
      ROPE_UNROLL
      for (int row = 0; row < kKeys; row += kStep) {
        // Behind the last row nothing is read.
        block.CopyAsync(thread, to + PlaceOf(thread) + row * kPitch, from, begin + row < end);
        from += kStep * stride;
      }
    });
  }

  // Stores the i-th chunk of a tile at `to`, and its residuals at `residuals` unless that is -1.
  template <typename Block>
  ROPE_DEVICE static void StoreNumbers(Block& block, int thread, int i, int to, int residuals,
                                       const float* numbers) {
    T rounded[kChunk];
    ROPE_UNROLL
    for (int x = 0; x < kChunk; ++x) rounded[x] = FromFloat<T>(numbers[x]);
    Store(block, thread, i, to, rounded);
    if (residuals < 0) return;
    ROPE_UNROLL
    for (int x = 0; x < kChunk; ++x) rounded[x] = ResidualOf(numbers[x], rounded[x]);
    Store(block, thread, i, residuals, rounded);
  }

  template <typename Block>
  ROPE_DEVICE static void Store(Block& block, int thread, int i, int to, const T* chunk) {
    uint32_t words[4];
    ROPE_UNROLL
    for (int x = 0; x < 4; ++x) words[x] = Pair(chunk[2 * x], chunk[2 * x + 1]);
    block.Store(thread, to + PlaceOf(i), words);
  }

  const Call<T>& call_;
  const Task task_;  // a copy, so that nothing points into the kernel's registers
  const int64_t past_;
};

}  // namespace rope::cuda

#endif  // ROPE_CUDA_TENSOR_TILES_H_
