// SPDX-License-Identifier: Apache-2.0
// State shared by modules: the interned strings, lists, shapes, metadata and values that ids refer to. A module and its
// clones share a context, so cloning copies no contents and ids are valid in all of them. Contents live as long as the
// last module. Not synchronized: one thread at a time may intern; any number may read existing contents.
#ifndef HLOKIT_IR_GRAPH_CONTEXT_H_
#define HLOKIT_IR_GRAPH_CONTEXT_H_

#include <memory>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/arena.h"
#include "ir/core/list_pool.h"
#include "ir/core/source_buffer.h"
#include "ir/core/string_pool.h"
#include "ir/graph/metadata.h"
#include "ir/types/literal.h"
#include "ir/types/shape.h"

namespace hlokit {

class Context {
 public:
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Keeps `source` alive, so that strings may point into it.
  void Keep(std::shared_ptr<const SourceBuffer> source) { sources_.push_back(std::move(source)); }

 private:
  Arena arena_;  // before the pools, which allocate from it
  std::vector<std::shared_ptr<const SourceBuffer>> sources_;

 public:
  StringPool strings{&arena_};
  ListPool lists{&arena_};
  ShapeTable shapes{&arena_, &lists};
  MetadataPool metadata{&lists};
  LiteralPool literals{&arena_};

  std::string_view str(StringId id) const { return strings[id]; }
  absl::Span<const int64_t> list(ListId id) const { return lists[id]; }
  Shape shape(ShapeId id) const { return shapes[id]; }

  // The value of a PayloadKind::kInt64 payload, and back: small values are stored as they are, others as a list of one.
  int64_t DecodeInt64(uint32_t payload) const {
    return payload < 0x80000000u ? payload : lists[ListId(payload & 0x7fffffffu)][0];
  }
  uint32_t EncodeInt64(int64_t value) {
    if (value >= 0 && value < int64_t{0x80000000}) return static_cast<uint32_t>(value);
    return 0x80000000u | lists.Intern({value}).value;
  }
  const Arena& arena() const { return arena_; }
};

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_CONTEXT_H_
