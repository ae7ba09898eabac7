// SPDX-License-Identifier: Apache-2.0
// Compiled graphs of a device. The key is the graph itself, encoded as words (operands, interned arguments, shapes and
// numbers of parameters, roots, options); a lookup compares all of them rather than a digest, so that different graphs
// never collide.
#ifndef HLOKIT_TRACER_STEP_GRAPH_CACHE_H_
#define HLOKIT_TRACER_STEP_GRAPH_CACHE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/hashing.h"
#include "ir/digest/digest.h"
#include "ir/types/shape.h"
#include "runtime/client/client.h"

namespace hlokit::lazy {

struct CompiledGraph {
  std::vector<uint32_t> words;
  Digest hash;  // of the graph's contents: equal in every process
  std::shared_ptr<runtime::Executable> executable;
  int64_t nodes = 0;
  int64_t inputs = 0;
  int64_t outputs = 0;
  std::string root;                  // symbol of the first result's node
  std::vector<Shape> result_shapes;  // of the device's shape table
  std::vector<int64_t> donated_parameters;
  // For explanations, set if requested: lazy IR, and properties that it does not show.
  std::string text;
  std::vector<uint32_t> parameter_sequence;  // of leaves in post-order: their parameter numbers
  bool force = false;
};

class GraphCache {
 public:
  explicit GraphCache(size_t capacity) : capacity_(capacity) {}

  // Returns the entry and makes it the most recent one; null if there is none.
  std::shared_ptr<CompiledGraph> Find(absl::Span<const uint32_t> words) {
    const auto [begin, end] = index_.equal_range(Hash(words));
    for (auto it = begin; it != end; ++it) {
      const CompiledGraph& graph = **it->second;
      if (absl::MakeConstSpan(graph.words) == words) {
        entries_.splice(entries_.begin(), entries_, it->second);
        return *it->second;
      }
    }
    return nullptr;
  }
  void Insert(std::shared_ptr<CompiledGraph> graph) {
    if (entries_.size() >= capacity_ && !entries_.empty()) {
      const auto last = std::prev(entries_.end());
      const auto [begin, end] = index_.equal_range(Hash((*last)->words));
      for (auto it = begin; it != end; ++it) {
        if (it->second == last) {
          index_.erase(it);
          break;
        }
      }
      entries_.pop_back();
    }
    entries_.push_front(std::move(graph));
    index_.emplace(Hash(entries_.front()->words), entries_.begin());
  }
  const std::list<std::shared_ptr<CompiledGraph>>& entries() const { return entries_; }

 private:
  static uint64_t Hash(absl::Span<const uint32_t> words) {
    return HashBytes(words.data(), words.size() * sizeof(uint32_t));
  }

  size_t capacity_;
  std::list<std::shared_ptr<CompiledGraph>> entries_;  // most recent first
  std::unordered_multimap<uint64_t, std::list<std::shared_ptr<CompiledGraph>>::iterator> index_;
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_GRAPH_CACHE_H_
