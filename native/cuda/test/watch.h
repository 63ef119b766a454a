// What a GPU would do in any order, seen on the host.
#ifndef ROPE_CUDA_TEST_WATCH_H_
#define ROPE_CUDA_TEST_WATCH_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace rope::cuda::test {

// Watches for what a GPU would do in any order: 16 bytes of shared memory that are
// written while others may still read or write them, or read before a barrier
// has shown what was written.
class Watch {
 public:
  explicit Watch(size_t bytes) : pieces_(bytes / 16 + 1) {}

  [[noreturn]] static void Fail(const char* what) {
    std::fprintf(stderr, "emulated block: %s\n", what);
    std::abort();
  }

  void Barrier() { ++now_; }

  void Write(int thread, int place, bool copies) {
    Piece& piece = At(place);
    if (piece.copies) Fail("writes where a copy is on its way");
    if (piece.products > 0) Fail("writes what a product still reads");
    if (piece.written == now_ && piece.writer != thread) Fail("two threads write in one step");
    if (piece.read == now_ && piece.reader != thread / 32) Fail("writes what is still read");
    piece.written = now_;
    piece.writer = thread;
    piece.copies = copies;
    piece.shown = -1;
  }
  void Arrive(int thread, int place) {
    Piece& piece = At(place);
    piece.written = now_;
    piece.writer = thread;
    piece.copies = false;
  }
  void Read(int warp, int place) {
    Piece& piece = At(place);
    if (piece.copies) Fail("reads what is on its way");
    if (piece.written == now_) Fail("reads what no barrier has shown");
    // Two warps read: whoever writes is another one.
    piece.reader = piece.read == now_ && piece.reader != warp ? -1 : warp;
    piece.read = now_;
  }

  // Products of warpgroups read in a way of their own, to which all threads show what they wrote
  // or awaited. Whether a product has ended, its own warps know; others need a barrier.
  void ShowToProducts() {
    for (Piece& piece : pieces_) {
      if (piece.written >= 0 && !piece.copies && piece.shown < 0) piece.shown = now_;
    }
  }
  void BeginProduct(int place) {
    Piece& piece = At(place);
    if (piece.copies) Fail("a product reads what is on its way");
    if (piece.shown < 0) Fail("a product reads what was not shown to products");
    if (piece.shown == now_) Fail("a product reads what no barrier has shown");
    ++piece.products;
  }
  void EndProduct(int place) {
    Piece& piece = At(place);
    --piece.products;
    piece.reader = -1;
    piece.read = now_;
  }

 private:
  struct Piece {
    int64_t written = -1;
    int writer = -1;
    int64_t read = -1;
    int reader = -1;  // the warp; -1: several
    bool copies = false;
    int products = 0;    // that read it now
    int64_t shown = -1;  // to products; -1: not since it was written
  };
  Piece& At(int place) {
    if (place % 16 != 0) Fail("16 bytes that are not aligned");
    return pieces_.at(static_cast<size_t>(place / 16));
  }

  int64_t now_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace rope::cuda::test

#endif  // ROPE_CUDA_TEST_WATCH_H_
