#include "behaviour_test.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "check.h"
#include "fixture.h"
#include "reference.h"

namespace rope::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Call Small(int64_t length, int64_t past) {
  Call call;
  call.params.num_heads = 4;
  call.params.kv_num_heads = 2;
  call.params.frequencies = Frequencies(16);
  call.head_size = 16;
  call.v_head_size = 24;
  call.length = length;
  call.past = past;
  return call;
}

void Compute(Call& call, const std::string& name) {
  TestHost host(2);
  Expect(RunAttention(call.params, call.Args(), host), name + ": no memory");
}

bool AllFinite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

// The largest difference; NaN if there is one.
double Farthest(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = Worse(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return largest;
}

// Query rows before the first real key see nothing and give exact zeros.
void TestRowsThatSeeNothing(const std::string& target) {
  for (const int64_t length : {1, 9, 200}) {
    Call call = Small(length, 0);
    call.left_padding = length;
    call.Draw(1);
    Compute(call, target);
    Expect(std::all_of(call.output.begin(), call.output.end(), [](float v) { return v == 0; }),
           target + ": a query that sees no key must give zeros, length " + std::to_string(length));
  }
}

// Hidden keys contribute nothing at all, even where they hold NaN or infinity.
void TestHiddenKeysAreNothing(const std::string& target) {
  for (const float poison : {std::nanf(""), kInfinity, -kInfinity}) {
    for (const int64_t length : {1, 3, 150}) {
      for (const int64_t past : {64, 1500}) {
        Call clean = Small(length, past);
        clean.left_padding = 40;
        clean.Draw(2);
        Call poisoned = clean;
        for (int64_t h = 0; h < 2; ++h) {
          for (int64_t j = 0; j < 40; ++j) {
            std::fill_n(poisoned.past_key.begin() + (h * past + j) * 16, 16, poison);
            std::fill_n(poisoned.past_value.begin() + (h * past + j) * 24, 24, poison);
          }
        }
        Compute(clean, target);
        Compute(poisoned, target);
        // The order of sums may differ between the plain and the careful path.
        Expect(Farthest(clean.output, poisoned.output) <= 1e-6,
               target + ": hidden " + std::to_string(poison) + " leaks into the output, length " +
                   std::to_string(length) + " past " + std::to_string(past));
      }
    }
  }
}

// So do keys of other documents and keys that a bias hides.
void TestMaskedKeysAreNothing(const std::string& target) {
  for (const float poison : {std::nanf(""), kInfinity, -kInfinity}) {
    for (const int64_t length : {1, 3, 150}) {
      for (const bool by_bias : {false, true}) {
        Call clean = Small(length, 300);
        clean.params.softcap = 3;
        clean.documents = by_bias ? 0 : 1;
        if (by_bias) clean.bias_dims = {1, 1, 1, 300 + length};
        clean.Draw(2);
        // Of every six keys the first three, and the first tile, stay visible.
        const auto hidden = [](int64_t j) { return j >= 256 && j % 6 >= 3; };
        const auto hide = [&](Call& call) {
          for (int64_t j = 0; j < 300 + length; ++j) {
            const auto at = static_cast<size_t>(j);
            if (!by_bias) call.ids[at] = hidden(j) && j < 300 ? 2 : 1;
            if (by_bias && hidden(j) && j < 300) call.bias[at] = -kInfinity;
          }
        };
        hide(clean);
        Call poisoned = clean;
        for (int64_t h = 0; h < 2; ++h) {
          for (int64_t j = 0; j < 300; ++j) {
            if (!hidden(j)) continue;
            std::fill_n(poisoned.past_key.begin() + (h * 300 + j) * 16, 16, poison);
            std::fill_n(poisoned.past_value.begin() + (h * 300 + j) * 24, 24, poison);
          }
        }
        Compute(clean, target);
        Compute(poisoned, target);
        Expect(AllFinite(clean.output) && Farthest(clean.output, poisoned.output) <= 1e-6,
               target + ": a key hidden by " + (by_bias ? "a bias" : "its document") + " leaks " +
                   std::to_string(poison) + " into the output, length " + std::to_string(length));
      }
    }
  }
}

// A mask hides keys anywhere, not only in front.
void TestHolesInMask(const std::string& target) {
  for (const int64_t length : {1, 90}) {
    Call call = Small(length, 300);
    call.left_padding = 3;
    call.Draw(12);
    for (const int64_t j : {4, 70, 71, 72, 200, 299}) call.mask[static_cast<size_t>(j)] = 0;
    const auto truth = Reference<double>(call.params, call.Args());
    Compute(call, target);
    double largest = 0;
    for (size_t i = 0; i < truth.output.size(); ++i) {
      largest = Worse(largest, std::abs(static_cast<double>(call.output[i]) - truth.output[i]));
    }
    Expect(largest <= 1e-5, target + ": holes in a mask are overlooked, length " +
                                std::to_string(length) + ": off by " + std::to_string(largest));
  }
}

// A later token that is infinite must not reach the earlier ones.
void TestFutureIsNothing(const std::string& target) {
  Call call = Small(23, 0);
  call.Draw(3);
  for (int64_t h = 0; h < 2; ++h) {
    std::fill_n(call.value.begin() + (h * 23 + 22) * 24, 24, kInfinity);
  }
  Compute(call, target);
  for (int64_t h = 0; h < 4; ++h) {
    const auto head = call.output.begin() + h * 23 * 24;
    Expect(AllFinite({head, head + 22 * 24}), target + ": an infinite value reaches the past");
    Expect(!std::isfinite(*(head + 22 * 24)), target + ": an infinite value gets lost");
  }
}

bool AnyNumber(const std::vector<float>& values, int64_t count) {
  return std::any_of(values.begin(), values.begin() + count,
                     [](float v) { return !std::isnan(v); });
}

// What is visible and not a number must show in the output.
void TestNanIsNotHidden(const std::string& target) {
  for (const int64_t length : {1, 40}) {
    for (const int64_t past : {0, 10, 1500}) {
      Call call = Small(length, past);
      call.params.causal = false;
      call.params.softcap = past == 10 ? 3.0f : 0.0f;
      call.Draw(4);
      const std::string size =
          ", length " + std::to_string(length) + " past " + std::to_string(past);
      // Query heads 0 and 1 read key-value head 0.
      Call nan_key = call;
      std::fill_n(nan_key.key.begin(), 16, std::nanf(""));
      Compute(nan_key, target);
      Expect(!AnyNumber(nan_key.output, 2 * length * 24),
             target + ": a NaN key gives a number" + size);
      if (past < 1500) continue;
      Call nan_tiles = call;
      // Whole tiles only: a tile with a number in it would show the NaN anyhow.
      std::fill_n(nan_tiles.past_key.begin(), 256 * 16, std::nanf(""));
      Compute(nan_tiles, target);
      Expect(!AnyNumber(nan_tiles.output, 2 * length * 24),
             target + ": tiles of NaN keys give a number" + size);
    }
  }
}

// Keys whose scores are all -inf are not "no keys": softmax is 0 / 0 there.
void TestAllScoresMinusInfinity(const std::string& target) {
  for (const int64_t length : {1, 40}) {
    Call call = Small(length, 0);
    call.params.frequencies.clear();
    call.Draw(4);
    std::fill(call.query.begin(), call.query.end(), -1e30f);
    std::fill(call.key.begin(), call.key.end(), 1e30f);
    Compute(call, target);
    Expect(!AnyNumber(call.output, static_cast<int64_t>(call.output.size())),
           target + ": scores of -inf give a number, length " + std::to_string(length));
  }
}

// Scores far beyond exp's range still give a softmax.
void TestHugeScores(const std::string& target) {
  for (const int64_t length : {1, 70}) {
    Call call = Small(length, 300);
    call.magnitude = 1e15f;
    call.Draw(5);
    Compute(call, target);
    Expect(AllFinite(call.output), target + ": huge scores overflow");
  }
}

// past and present in one buffer: nothing is copied and nothing is lost.
void TestSharedBuffer(const std::string& target) {
  for (const int64_t length : {0, 1, 30}) {
    Call separate = Small(length, 50);
    separate.batch = 2;
    separate.Draw(6);
    Call shared = separate;
    Compute(separate, target);
    std::copy(shared.past_key.begin(), shared.past_key.end(), shared.present_key.begin());
    std::copy(shared.past_value.begin(), shared.past_value.end(), shared.present_value.begin());
    AttentionArgs<float> args = shared.Args();
    args.past_key.data = args.present_key.data;
    args.past_value.data = args.present_value.data;
    TestHost host(2);
    Expect(RunAttention(shared.params, args, host), target + ": no memory");
    Expect(shared.present_key == separate.present_key &&
               shared.present_value == separate.present_value,
           target + ": past and present in one buffer give another cache");
    // Tiles may be cut elsewhere, so sums may differ in the last bits.
    Expect(Farthest(shared.output, separate.output) <= 1e-6,
           target + ": past and present in one buffer give another output");
  }
}

// One buffer whose present has more rows than its past: heads move up.
void TestSharedBufferWithMoreRows(const std::string& target) {
  for (const int64_t length : {0, 1, 30}) {
    Call wide = Small(length, 50);
    wide.batch = 2;
    wide.row_past = {50, 13};
    wide.capacity = 90;
    wide.Draw(6);
    Call moved = wide;
    Compute(wide, target);
    AttentionArgs<float> args = moved.Args();
    const auto narrow = [&](Rows<const float>& past, const std::vector<float>& from,
                            std::vector<float>& to, int64_t size) {
      for (int64_t i = 0; i < 4; ++i) {
        std::copy_n(from.begin() + i * 90 * size, 55 * size, to.begin() + i * 55 * size);
      }
      past = {to.data(), 2 * 55 * size, 55 * size, size};
    };
    narrow(args.past_key, moved.past_key, moved.present_key, 16);
    narrow(args.past_value, moved.past_value, moved.present_value, 24);
    TestHost host(2);
    Expect(RunAttention(moved.params, args, host), target + ": no memory");
    Expect(moved.present_key == wide.present_key && moved.present_value == wide.present_value,
           target + ": a buffer that gets more rows gives another cache");
    Expect(Farthest(moved.output, wide.output) <= 1e-6,
           target + ": a buffer that gets more rows gives another output");
  }
}

// Appending in place needs no memory that grows with the context, and writes
// nothing but the new rows.
void TestInPlaceMemory(const std::string& target) {
  constexpr int64_t kPasts[] = {1000, 8000, 20000, 60000};
  size_t peaks[4];
  for (const int i : {0, 1, 2, 3}) {
    Call call = Small(1, kPasts[i]);
    call.capacity = call.past + 5;
    call.in_place = true;
    call.Draw(11);
    AttentionArgs<float> args = call.Args();
    TestHost host(1);
    Expect(RunAttention(call.params, args, host), target + ": no memory");
    peaks[i] = host.peak();
    const auto untouched = [&](const std::vector<float>& now, const std::vector<float>& before,
                               int64_t size) {
      for (int64_t x = 0; x < static_cast<int64_t>(now.size()); ++x) {
        const bool added = x / size % call.capacity == call.past;
        const float a = now[static_cast<size_t>(x)];
        const float b = before[static_cast<size_t>(x)];
        if (added ? std::isnan(a) : a != b && !(std::isnan(a) && std::isnan(b))) return false;
      }
      return true;
    };
    Expect(untouched(call.present_key, call.past_key, 16) &&
               untouched(call.present_value, call.past_value, 24),
           target + ": appending in place writes elsewhere");
  }
  Expect(peaks[2] == peaks[3], target + ": decoding in place takes " + std::to_string(peaks[2]) +
                                   " bytes at 20,000 keys and " + std::to_string(peaks[3]) +
                                   " at 60,000");
  // Keys are split into at most 32 tasks; each leaves sums, maximum and denominator
  // of its rows, here those of two query heads.
  const size_t partials = 32 * 2 * (24 + 2) * sizeof(float) + 64;
  Expect(peaks[1] <= peaks[0] + partials,
         target + ": decoding in place takes " + std::to_string(peaks[0]) +
             " bytes at 1,000 keys and " + std::to_string(peaks[1]) + " at 8,000");
}

// Tokens fed in pieces give what they give at once.
void TestPieces(const std::string& target) {
  Call whole = Small(61, 0);
  whole.params.num_heads = 2;  // one head per kv head keeps the copying below short
  whole.params.bands.push_back({20, 1, -10});
  whole.Draw(7);
  Compute(whole, target);
  Call piece = Small(1, 0);
  piece.params = whole.params;
  piece.Draw(8);
  const auto take = [](const std::vector<float>& from, int64_t row, int64_t size) {
    std::vector<float> out;
    for (int64_t h = 0; h < 2; ++h) {
      const auto at = from.begin() + (h * 61 + row) * size;
      out.insert(out.end(), at, at + size);
    }
    return out;
  };
  for (int64_t row = 0; row < 61; ++row) {
    piece.past = row;
    piece.past_key = piece.present_key;
    piece.past_value = piece.present_value;
    if (row == 0) piece.past_key.clear(), piece.past_value.clear();
    piece.query = take(whole.query, row, 16);
    piece.key = take(whole.key, row, 16);
    piece.value = take(whole.value, row, 24);
    piece.present_key.assign(static_cast<size_t>(2 * (row + 1) * 16), NAN);
    piece.present_value.assign(static_cast<size_t>(2 * (row + 1) * 24), NAN);
    Compute(piece, target);
    const auto wanted = take(whole.output, row, 24);
    for (size_t x = 0; x < wanted.size(); ++x) {
      if (std::abs(wanted[x] - piece.output[x]) <= 1e-5f) continue;
      Expect(false, target + ": token " + std::to_string(row) + " alone differs");
      break;
    }
  }
  Expect(piece.present_key == whole.present_key, target + ": caches grown in two ways differ");
}

// Working memory follows the length, never length times total.
void TestMemory(const std::string& target) {
  size_t peaks[2];
  for (const int i : {0, 1}) {
    Call call = Small(i == 0 ? 500 : 2000, 0);
    call.Draw(9);
    TestHost host(1);
    Expect(RunAttention(call.params, call.Args(), host), target + ": no memory");
    peaks[i] = host.peak();
  }
  // 1,500 more tokens may bring their row of cosines and sines each, no more.
  Expect(peaks[1] - peaks[0] <= 1500 * 2 * 8 * sizeof(float) + 4096,
         target + ": memory grows from " + std::to_string(peaks[0]) + " to " +
             std::to_string(peaks[1]) + " bytes with the length");
  // A thread's own memory is bounded whatever the shape; the rest is the angle tables.
  for (const bool raw : {false, true}) {
    for (const int64_t size : {16, 128, 256}) {
      for (const int64_t length : {1, 3, 400}) {
        Call wide = Small(length, 500 - length);
        wide.params.num_heads = 64;
        wide.params.kv_num_heads = 16;
        wide.params.bands.push_back({20, 1, -10, 0.5});
        wide.params.raw_cache = raw;
        wide.params.frequencies = Frequencies(size);
        wide.head_size = wide.v_head_size = size;
        wide.Draw(9);
        TestHost wide_host(1);
        Expect(RunAttention(wide.params, wide.Args(), wide_host), target + ": no memory");
        // Raw keys have a row for every 32nd, and 32 for the ways from there, for each band.
        const int64_t rows = 2 * length + (raw ? 2 * (32 + 16) : 0);
        const size_t tables = static_cast<size_t>(rows * size) * sizeof(float);
        Expect(wide_host.peak() <= tables + (1 << 20) + 4096,
               target + ": " + std::to_string(wide_host.peak()) + " bytes of memory at head size " +
                   std::to_string(size) + ", length " + std::to_string(length) +
                   (raw ? ", raw" : ""));
      }
    }
  }
  Call call = Small(2000, 0);
  call.Draw(9);
  TestHost host(1);
  host.set_limit(peaks[1] - 1);
  Expect(!RunAttention(call.params, call.Args(), host), target + ": lack of memory goes unnoticed");
  Expect(host.in_use() == 0, target + ": memory not given back");
}

void TestEmpty(const std::string& target) {
  Call call = Small(0, 0);
  call.Draw(10);
  Compute(call, target);
  Call past_only = Small(0, 5);
  past_only.Draw(10);
  Compute(past_only, target);
  Expect(past_only.present_key == past_only.past_key, target + ": an empty call loses the past");
}

}  // namespace

void TestBehaviour(const std::string& target) {
  TestRowsThatSeeNothing(target);
  TestHiddenKeysAreNothing(target);
  TestMaskedKeysAreNothing(target);
  TestHolesInMask(target);
  TestFutureIsNothing(target);
  TestNanIsNotHidden(target);
  TestAllScoresMinusInfinity(target);
  TestHugeScores(target);
  TestSharedBuffer(target);
  TestSharedBufferWithMoreRows(target);
  TestPieces(target);
  TestEmpty(target);
}

void TestWorkingMemory(const std::string& target) {
  TestInPlaceMemory(target);
  TestMemory(target);
}

}  // namespace rope::test
