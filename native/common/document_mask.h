// Who sees whom by document ids. For kernels on any device, as band.h is.
#ifndef ROPE_DOCUMENT_MASK_H_
#define ROPE_DOCUMENT_MASK_H_

#include <cstdint>

namespace rope {

// Who sees whom when tokens carry document ids: 0 is the anchor, documents count
// from 1, -1 is a reader. A reader sees every key, and only readers see a reader's.
enum class DocumentMask {
  kIntra,   // a query sees the keys of its own document
  kAnchor,  // and those of document 0
};

inline constexpr int64_t kReader = -1;
inline constexpr int64_t kAnchor = 0;

// Whether the documents let a query see a key, both given by id.
constexpr bool DocumentShows(DocumentMask mask, int64_t query, int64_t key) {
  return query == kReader || query == key || (mask == DocumentMask::kAnchor && key == kAnchor);
}

}  // namespace rope

#endif  // ROPE_DOCUMENT_MASK_H_
