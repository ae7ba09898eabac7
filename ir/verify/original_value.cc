// SPDX-License-Identifier: Apache-2.0
// Verifies that original values have the tuple structure of their instruction's shape.
#include "ir/text/original_value.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "ir/core/str_cat.h"
#include "ir/verify/context.h"

namespace hlokit::verify_internal {
namespace {

// Traverses `encoded` (see original_value.h) and `shape` in parallel.
bool SameStructure(absl::Span<const int64_t> encoded, Shape shape) {
  absl::InlinedVector<std::pair<Shape, int64_t>, 8> open;  // tuples, with the next element
  bool done = false;
  for (size_t at = 0; at < encoded.size(); ++at) {
    const auto kind = static_cast<OriginalValue::Kind>(encoded[at]);
    if (kind == OriginalValue::Kind::kClose) {
      if (open.empty() || open.back().second != open.back().first.tuple_size()) return false;
      open.pop_back();
      continue;
    }
    Shape here = shape;
    if (!open.empty()) {
      auto& [tuple, next] = open.back();
      if (next == tuple.tuple_size()) return false;
      here = tuple.element(next++);
    } else if (std::exchange(done, true)) {
      return false;
    }
    if (kind == OriginalValue::Kind::kOpen) {
      if (!here.IsTuple()) return false;
      open.push_back({here, 0});
      continue;
    }
    if (here.IsTuple() && here.tuple_size() > 0) return false;
    if (kind == OriginalValue::Kind::kArray) {
      // Number of indices, name, indices.
      if (at + 1 >= encoded.size() || encoded[at + 1] < 0) return false;
      at += 2 + static_cast<size_t>(encoded[at + 1]);
    }
  }
  return done && open.empty();
}

}  // namespace

void CheckOriginalValue(VerifierContext& v, Instruction i, ListId id) {
  const absl::Span<const int64_t> encoded = v.module.context().list(id);
  const bool synthetic = encoded.size() == 1 && encoded[0] == -1;
  if (synthetic || SameStructure(encoded, i.shape())) return;
  v.Report(i, DiagnosticKind::kAttributeValue,
           StrCat("the tuple structure of its original value differs from its shape, ", ShapeText(i.shape())));
}

}  // namespace hlokit::verify_internal
