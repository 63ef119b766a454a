// Where the numbers of tensors stand. For kernels on any device, as band.h is.
#ifndef ROPE_ROWS_H_
#define ROPE_ROWS_H_

#include <cstdint>

namespace rope {

// Rows of channels with any layout in front: [batch, heads, rows, channels] or
// [batch, rows, heads * channels]. Strides count elements.
template <typename T>
struct Rows {
  T* data = nullptr;  // null when the tensor is absent
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t row_stride = 0;

  constexpr T* At(int64_t batch, int64_t head, int64_t row) const {
    return data + batch * batch_stride + head * head_stride + row * row_stride;
  }
};

// Numbers [batch, heads, queries, keys]; dimensions that are broadcast have stride 0.
template <typename T>
struct Bias {
  const T* data = nullptr;  // null when the tensor is absent
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t query_stride = 0;
  int64_t key_stride = 0;

  constexpr const T* At(int64_t batch, int64_t head, int64_t place, int64_t key) const {
    return data + batch * batch_stride + head * head_stride + place * query_stride +
           key * key_stride;
  }
};

}  // namespace rope

#endif  // ROPE_ROWS_H_
