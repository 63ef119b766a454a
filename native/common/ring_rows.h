// Which row of a cache that is a ring has which token. For kernels on any device: constexpr
// throughout.
#ifndef ROPE_RING_ROWS_H_
#define ROPE_RING_ROWS_H_

#include <cstdint>

namespace rope {

// Where a cache has its tokens that has no room for all of them. Behind the first ones the rows are
// a ring, in which new tokens take the place of the oldest.
struct Ring {
  int64_t first = 0;               // tokens that stay
  int64_t rows = 0;                // of the ring; 0: there is none, and tokens stand at their index
  const int64_t* turns = nullptr;  // [batch]: by how many rows the ring has turned; null: by none

  constexpr int64_t capacity() const { return first + rows; }
  // The row of the token at an index among those that are left.
  constexpr int64_t Row(int64_t batch, int64_t index) const {
    if (rows == 0 || index < first) return index;
    return first + (index - first + Turn(batch)) % rows;
  }
  // The same of a cached one, whose index is less than the capacity: without a division.
  constexpr int64_t CachedRow(int64_t batch, int64_t index) const {
    if (rows == 0 || index < first) return index;
    const int64_t row = index + Turn(batch);
    return row < capacity() ? row : row - rows;
  }
  // The index whose row follows on the last one: those before it, and those from it on, stand one
  // behind the other.
  constexpr int64_t Split(int64_t batch) const { return capacity() - Turn(batch); }
  // Whether a new token's row is still its own when the call is over.
  constexpr bool Keeps(int64_t index, int64_t place, int64_t new_keys) const {
    return rows == 0 || index < first || place >= new_keys - rows;
  }
  // The index of a row's token when the call is over, which leaves so many; `tokens` or more if it
  // has none.
  constexpr int64_t Newest(int64_t batch, int64_t row, int64_t tokens) const {
    if (rows == 0 || row < first) return row;
    // Tokens of a row are `rows` apart, and a ring that has turned has a token in each row.
    const int64_t turn = Turn(batch);
    const int64_t last = tokens - 1 + turn;
    return last < row ? tokens : last - (last - row) % rows - turn;
  }
  constexpr int64_t Turn(int64_t batch) const { return turns == nullptr ? 0 : turns[batch]; }
};

}  // namespace rope

#endif  // ROPE_RING_ROWS_H_
