// SPDX-License-Identifier: Apache-2.0
// Keys for structural equality of computations: exact word lists, so that hash collisions cannot matter.
#ifndef HLOKIT_PASSES_SIMPLIFY_INSTRUCTION_KEY_H_
#define HLOKIT_PASSES_SIMPLIFY_INSTRUCTION_KEY_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "ir/core/hashing.h"
#include "ir/core/intern_index.h"
#include "ir/graph/module.h"

namespace hlokit {

// A map from keys to the value of their first insertion. Keys are written consecutively into one array; a duplicate is
// removed again.
class KeySet {
 public:
  void Add(uint32_t word) { words_.push_back(word); }

  // Ends the key written since the last call. Returns the value of the first equal key, or inserts `value` and returns
  // it.
  uint32_t Find(uint32_t value) {
    const size_t begin = ends_.empty() ? 0 : ends_.back();
    const size_t size = words_.size() - begin;
    const uint32_t* key = words_.data() + begin;
    bool inserted = false;
    const uint32_t entry = index_.FindOrInsert(
        HashBytes(key, size * sizeof(uint32_t)),
        [&](uint32_t other) {
          const size_t other_begin = other == 0 ? 0 : ends_[other - 1];
          return ends_[other] - other_begin == size &&
                 std::memcmp(words_.data() + other_begin, key, size * sizeof(uint32_t)) == 0;
        },
        [&] {
          inserted = true;
          return static_cast<uint32_t>(values_.size());
        });
    if (inserted) {
      ends_.push_back(words_.size());
      values_.push_back(value);
    } else {
      words_.resize(begin);
    }
    return values_[entry];
  }

  // Reserves space for `n` keys of the usual size.
  void Reserve(size_t n) {
    words_.reserve(8 * n);
    ends_.reserve(n);
    values_.reserve(n);
    index_.Reserve(n);
  }
  void Clear() {
    words_.clear();
    ends_.clear();
    values_.clear();
    index_ = InternIndex();
  }

 private:
  std::vector<uint32_t> words_;
  std::vector<size_t> ends_;      // by entry
  std::vector<uint32_t> values_;  // by entry
  InternIndex index_;
};

// Appends the semantic attributes. `same[id]` is the representative of the computations equal to `id`.
inline void AddAttributes(KeySet* key, Instruction i, const std::vector<uint32_t>& same) {
  const Module& module = i.module();
  for (const AttrValue& a : i.attrs()) {
    const AttrInfo& info = InfoOf(a.attr);
    if (info.category == AttrCategory::kAnnotation) continue;
    key->Add(static_cast<uint32_t>(a.attr));
    if (NamesComputations(a.attr)) {
      module.ForEachCallee(a, [&](ComputationId callee) { key->Add(same[callee.value]); });
      key->Add(ComputationId::kNone);
    } else {
      key->Add(a.payload);
    }
  }
}

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_INSTRUCTION_KEY_H_
