// Products of warpgroups (wgmma) on the host, from PTX's description of descriptors, of
// operands and of what must be waited for.
#ifndef ROPE_CUDA_TEST_EMULATED_PRODUCTS_H_
#define ROPE_CUDA_TEST_EMULATED_PRODUCTS_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "element.h"
#include "watch.h"
#include "wgmma.h"

namespace rope::cuda::test {

// A product ends when it is awaited. Until then its results stand elsewhere, and in their
// registers a number that nobody may read or change.
class EmulatedProducts {
 public:
  EmulatedProducts(Watch& watch, const std::vector<float>& shared)
      : watch_(watch),
        shared_(reinterpret_cast<const char*>(shared.data())),
        bytes_(static_cast<int64_t>(shared.size() * sizeof(float))) {}
  ~EmulatedProducts() {
    if (!in_flight_.empty()) Watch::Fail("ends before its products");
  }
  EmulatedProducts(const EmulatedProducts&) = delete;
  EmulatedProducts& operator=(const EmulatedProducts&) = delete;

  uint32_t Address(int place) const { return kBegin + static_cast<uint32_t>(place); }

  // Registers are as products shall see them; some may have changed.
  void Begin() { begun_ = true; }
  void Touch() { begun_ = false; }

  // d = a · b, or that added to d, in a warpgroup: a by a descriptor, or, without one, in
  // a_registers(thread).
  template <typename T, typename D>
  void Start(int warpgroup, int columns, const D& d, const std::vector<uint64_t>& a,
             const std::function<const uint32_t*(int)>& a_registers, uint64_t b, bool adds) {
    if (!begun_) Watch::Fail("a product of registers that may have changed since BeginProducts");
    Product product{columns, adds, a, b, {}, {}, {}, [](uint16_t x) { return ToFloat(T{x}); }};
    for (int t = 0; t < kWarpgroupThreads; ++t) {
      const int thread = warpgroup * kWarpgroupThreads + t;
      product.d.push_back(d(thread));
      TakeResults(product.d.back(), columns);
      if (!a.empty()) continue;
      product.a_registers.push_back(a_registers(thread));
      product.a_copies.emplace_back();
      std::memcpy(product.a_copies.back().data(), product.a_registers.back(), kBytesOfA);
    }
    ForPlaces(product, [&](int place) { watch_.BeginProduct(place); });
    groups_.back().push_back(std::move(product));
  }

  void EndGroup() { groups_.emplace_back(); }

  // Each warpgroup has its groups; all have the same number of them.
  void Await(size_t left) {
    for (; groups_.size() > left + 1; groups_.pop_front()) {
      for (const Product& product : groups_.front()) End(product);
    }
  }

 private:
  static constexpr uint32_t kBegin = 1024;  // of shared memory, which is aligned so
  static constexpr size_t kBytesOfA = 4 * sizeof(uint32_t);
  static constexpr uint32_t kInFlight = 0xffd1ea5e;  // a NaN

  struct Product {
    int columns;
    bool adds;
    std::vector<uint64_t> a;  // a descriptor, or none
    uint64_t b;
    std::vector<float*> d;  // of each thread
    std::vector<const uint32_t*> a_registers;
    std::vector<std::array<uint32_t, 4>> a_copies;
    std::function<float(uint16_t)> number;

    // Of b: rows of neighbouring columns, where a stands in registers.
    bool transposed() const { return a.empty(); }
  };
  struct Results {
    std::vector<float> numbers;
    int products = 0;  // that are under way
  };

  void TakeResults(float* d, int columns) {
    Results& results = in_flight_[d];
    const auto count = static_cast<size_t>(columns / 2);
    if (results.products++ == 0) {
      results.numbers.assign(d, d + count);
      for (size_t i = 0; i < count; ++i) std::memcpy(d + i, &kInFlight, sizeof(kInFlight));
    }
    if (results.numbers.size() != count) Watch::Fail("products of two shapes in one register");
  }

  // Where the chunk that stands `offset` bytes behind a matrix's begin is: a chunk's number in its
  // row of 128 bytes is changed by the row's number in its 1024 bytes.
  int PlaceOf(uint64_t descriptor, uint32_t offset) const {
    if (descriptor >> 62 != 1) Watch::Fail("a matrix that is not in squares of 128 bytes");
    if ((descriptor >> 49 & 7) != 0) Watch::Fail("squares that are not aligned");
    const uint32_t address = Field(descriptor, 0) + offset;
    const auto place = static_cast<int64_t>(address ^ (address >> 7 & 7) << 4) - kBegin;
    if (place < 0 || place + 16 > bytes_) Watch::Fail("a matrix outside of shared memory");
    return static_cast<int>(place);
  }
  static uint32_t Field(uint64_t descriptor, int at) {
    return static_cast<uint32_t>(descriptor >> at & 0x3fff) << 4;
  }

  // A row of sixteen neighbours is two chunks; rows go on by the stride.
  int RowPlace(uint64_t matrix, int row, int chunk) const {
    const auto r = static_cast<uint32_t>(row);
    return PlaceOf(matrix,
                   r % 8 * 128 + r / 8 * Field(matrix, 32) + static_cast<uint32_t>(chunk) * 16);
  }
  // Of a transposed matrix eight neighbours are those of a row k: 64 of them stand side by side,
  // the next 64 by the leading offset, and the next eight rows by the stride.
  int TransposedPlace(uint64_t matrix, int k, int chunk) const {
    const auto row = static_cast<uint32_t>(k), c = static_cast<uint32_t>(chunk);
    return PlaceOf(matrix, row % 8 * 128 + row / 8 * Field(matrix, 32) + c % 8 * 16 +
                               c / 8 * Field(matrix, 16));
  }

  template <typename Use>
  void ForPlaces(const Product& product, const Use& use) const {
    for (int row = 0; row < kWarpgroupRows && !product.a.empty(); ++row) {
      for (int chunk = 0; chunk < 2; ++chunk) use(RowPlace(product.a[0], row, chunk));
    }
    const int rows = product.transposed() ? 16 : product.columns;
    const int chunks = product.transposed() ? product.columns / 8 : 2;
    for (int row = 0; row < rows; ++row) {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        use(product.transposed() ? TransposedPlace(product.b, row, chunk)
                                 : RowPlace(product.b, row, chunk));
      }
    }
  }

  float Read(const Product& product, int place, int i) const {
    uint16_t bits;
    std::memcpy(&bits, shared_ + place + 2 * i, sizeof(bits));
    return product.number(bits);
  }

  void End(const Product& product) {
    float a[kWarpgroupRows][16];
    std::vector<std::vector<float>> b(16, std::vector<float>(static_cast<size_t>(product.columns)));
    for (int row = 0; row < kWarpgroupRows; ++row) {
      for (int k = 0; k < 16; ++k) {
        a[row][k] = product.a.empty() ? OfRegisters(product, row, k)
                                      : Read(product, RowPlace(product.a[0], row, k / 8), k % 8);
      }
    }
    for (int k = 0; k < 16; ++k) {
      for (int n = 0; n < product.columns; ++n) {
        b[static_cast<size_t>(k)][static_cast<size_t>(n)] =
            product.transposed() ? Read(product, TransposedPlace(product.b, k, n / 8), n % 8)
                                 : Read(product, RowPlace(product.b, n, k / 8), k % 8);
      }
    }
    for (int row = 0; row < kWarpgroupRows; ++row) {
      std::vector<float> sums(static_cast<size_t>(product.columns));
      for (size_t k = 0; k < 16; ++k) {
        for (size_t n = 0; n < sums.size(); ++n) sums[n] += a[row][k] * b[k][n];
      }
      for (size_t n = 0; n < sums.size(); ++n) {
        float& d = ResultAt(product, row, static_cast<int>(n));
        d = product.adds ? d + sums[n] : sums[n];
      }
    }
    ForPlaces(product, [&](int place) { watch_.EndProduct(place); });
    for (size_t t = 0; t < product.a_registers.size(); ++t) {
      if (std::memcmp(product.a_copies[t].data(), product.a_registers[t], kBytesOfA) != 0) {
        Watch::Fail("changes registers that a product still reads");
      }
    }
    for (float* d : product.d) GiveResults(d);
  }

  // Thread t of a warpgroup has of the sixteen rows of its warp t % 32 / 4 and + 8, and of each
  // eight columns 2 (t % 4) and the next one; of a in registers both rows of eight columns, then
  // of eight more.
  static size_t ThreadOf(int row, int column) {
    return static_cast<size_t>(row / 16 * 32 + row % 8 * 4 + column % 8 / 2);
  }
  float OfRegisters(const Product& product, int row, int k) const {
    const uint32_t pair =
        product.a_copies[ThreadOf(row, k)][static_cast<size_t>(k / 8 * 2 + row % 16 / 8)];
    return product.number(static_cast<uint16_t>(k % 2 == 0 ? pair : pair >> 16));
  }
  float& ResultAt(const Product& product, int row, int n) {
    Results& results = in_flight_.at(product.d[ThreadOf(row, n)]);
    return results.numbers[static_cast<size_t>(n / 8 * 4 + row % 16 / 8 * 2 + n % 2)];
  }

  void GiveResults(float* d) {
    Results& results = in_flight_.at(d);
    if (--results.products > 0) return;
    for (size_t i = 0; i < results.numbers.size(); ++i) {
      if (std::memcmp(d + i, &kInFlight, sizeof(kInFlight)) != 0) {
        Watch::Fail("changes the result of a product that is under way");
      }
      d[i] = results.numbers[i];
    }
    in_flight_.erase(d);
  }

  Watch& watch_;
  const char* const shared_;
  const int64_t bytes_;
  bool begun_ = false;
  std::deque<std::vector<Product>> groups_{1};  // the last one is not closed
  std::map<float*, Results> in_flight_;
};

}  // namespace rope::cuda::test

#endif  // ROPE_CUDA_TEST_EMULATED_PRODUCTS_H_
