// Keys that tell instructions apart by what they compute.
#ifndef HLOKIT_PASSES_SIMPLIFY_INSTRUCTION_KEY_H_
#define HLOKIT_PASSES_SIMPLIFY_INSTRUCTION_KEY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/module.h"

namespace hlokit {

// Exact keys as byte strings: equal keys mean equal things, so no hash is trusted.
class InstructionKey {
 public:
  void Clear() { bytes_.clear(); }
  void Add(uint32_t v) { bytes_.append(reinterpret_cast<const char*>(&v), sizeof(v)); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// The attributes that matter. `same[id]`: the computation that stands for all equal to it.
inline void AddAttributes(InstructionKey* key, Instruction i, const std::vector<uint32_t>& same) {
  const Module& module = i.module();
  for (const AttrValue& a : i.attrs()) {
    if (InfoOf(a.attr).meaning == AttrMeaning::kAnnotation) continue;
    key->Add(static_cast<uint32_t>(a.attr));
    const AttrType type = InfoOf(a.attr).type;
    if (type == AttrType::kComputation) {
      key->Add(same[a.payload]);
    } else if (type == AttrType::kComputationList) {
      const absl::Span<const int64_t> list = module.context().list(ListId(a.payload));
      key->Add(static_cast<uint32_t>(list.size()));
      for (int64_t id : list) key->Add(same[static_cast<size_t>(id)]);
    } else {
      key->Add(a.payload);
    }
  }
}

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_INSTRUCTION_KEY_H_
