#include "edges_test.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "check.h"
#include "fixture.h"

namespace rope::test {
namespace {

Call Plain() {
  Call call;
  call.params.num_heads = 3;
  call.params.kv_num_heads = 1;
  call.params.frequencies = Frequencies(16);
  call.head_size = call.v_head_size = 16;
  call.past = 30;
  call.length = 9;  // enough queries for a table of biases
  return call;
}

std::vector<float> Output(Call call) {
  TestHost host(1);
  Expect(call.Run(host), call.name + ": no memory");
  return call.output;
}

// Buckets that no key reaches may start anywhere.
void TestFarBuckets(const std::string& target) {
  Call call = Plain();
  call.params.distance_biases = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto with = [&](int64_t first, int64_t last) {
    call.params.distance_starts = {first, 3, last};
    call.Draw(4);
    return Output(call);
  };
  const auto wanted = with(-100000, 100000);
  Expect(with(INT64_MIN, INT64_MAX) == wanted, target + ": buckets at the ends of int64 differ");
  Expect(with(INT64_MIN, 100000) == wanted, target + ": a bucket at the smallest int64 differs");
}

// Scores of 0 stay 0 under the smallest cap.
void TestSmallestCap(const std::string& target) {
  Call call = Plain();
  call.Draw(5);
  std::fill(call.query.begin(), call.query.end(), 0.0f);
  const auto wanted = Output(call);
  call.params.softcap = 1e-40f;
  const auto output = Output(call);
  double error = 0;
  for (size_t i = 0; i < output.size(); ++i) {
    error = Worse(error, std::abs(static_cast<double>(output[i]) - wanted[i]));
  }
  Expect(error < 1e-6, target + ": a softcap of 1e-40 changes scores of 0");
}

// Rows of a batch that share their ids and positions are the same where the rest is.
void TestSharedDocuments(const std::string& target) {
  Call call = Plain();
  call.batch = 3;
  call.documents = 2;
  call.change_every = 4;
  call.params.document_restart = true;
  call.params.temperature = {0, 1, 1, 1};
  call.Draw(6);
  for (std::vector<float>* rows :
       {&call.query, &call.key, &call.value, &call.past_key, &call.past_value}) {
    const auto row = static_cast<int64_t>(rows->size()) / call.batch;
    for (int64_t b = 1; b < call.batch; ++b) {
      std::copy_n(rows->begin(), row, rows->begin() + b * row);
    }
  }
  AttentionArgs<float> args = call.Args();
  args.documents_batch_stride = 0;
  TestHost host(1);
  Expect(RunAttention(call.params, args, host), "shared documents: no memory");
  const auto row = static_cast<int64_t>(call.output.size()) / call.batch;
  for (int64_t b = 1; b < call.batch; ++b) {
    Expect(
        std::equal(call.output.begin(), call.output.begin() + row, call.output.begin() + b * row),
        target + ": rows that share their documents differ");
  }
}

}  // namespace

void TestEdges(const std::string& target) {
  TestFarBuckets(target);
  TestSmallestCap(target);
  TestSharedDocuments(target);
}

}  // namespace rope::test
