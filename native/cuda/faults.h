// What can be wrong with numbers that the host does not read.
#ifndef ROPE_CUDA_FAULTS_H_
#define ROPE_CUDA_FAULTS_H_

#include <string>

#include "max_position.h"

namespace rope::cuda {

enum class Fault { kCacheLength, kColumns, kDocumentIds, kPositions, kConsecutive };
inline constexpr int kFaults = 5;

// A sentence about an earlier run.
inline std::string TextOf(Fault fault) {
  const auto text = [](const std::string& what) {
    return what +
           "; it was found on the GPU, so an earlier run has made the output of that text NaN "
           "and has cached none of its tokens";
  };
  switch (fault) {
    case Fault::kCacheLength:
      return text(
          "cache_length was negative, or more than past_key has room for with the new "
          "tokens");
    case Fault::kColumns:
      return text("a text was longer than attention_mask, document_ids or a bias have columns");
    case Fault::kDocumentIds:
      return text(
          "document_ids had an id below -1; ids are -1 (reader), 0 (anchor) or more "
          "(documents)");
    case Fault::kPositions:
      return text("position_ids had a position that is not between 0 and " +
                  std::to_string(kMaxPosition));
    default:
      return text(
          "position_ids did not follow one another; with more than one band, chunks or a "
          "raw cache the positions of a row's real tokens must be consecutive");
  }
}

}  // namespace rope::cuda

#endif  // ROPE_CUDA_FAULTS_H_
