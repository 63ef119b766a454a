// Which keys a block of queries has to visit.
#ifndef ROPE_SPANS_H_
#define ROPE_SPANS_H_

#include <cstdint>

#include "documents.h"
#include "visible.h"

namespace rope {

// Calls visit(span), ascending, for what some query with its index in [queries)
// sees of the keys. Gaps of up to `bridge` keys are visited as well. `runs` is
// null where nothing has a document; `documents` are then not read.
template <typename Visit>
void ForEachSpan(const Geometry& geometry, Range queries, Range keys, const DocumentRuns* runs,
                 const BlockDocuments& documents, int64_t batch, int64_t bridge,
                 const Visit& visit) {
  Range span{};
  const auto add = [&](Range more) {
    if (more.empty()) return;
    if (!span.empty() && more.begin - span.end > bridge) {
      visit(span);
      span = more;
    } else {
      span = span.Hull(more);
    }
  };
  for (const Range section : {geometry.FirstSection(), geometry.SecondSection()}) {
    const Range part = keys.Intersect(geometry.KeysOfAny(queries.begin, queries.end - 1, section));
    if (runs == nullptr) {
      add(part);
    } else {
      runs->ForEach(batch, part, [&](const DocumentRun& run) {
        if (documents.Show(run.id)) add(run.keys);
      });
    }
  }
  if (!span.empty()) visit(span);
}

}  // namespace rope

#endif  // ROPE_SPANS_H_
