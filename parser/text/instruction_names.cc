// SPDX-License-Identifier: Apache-2.0
#include "parser/text/instruction_names.h"

#include "ir/core/str_cat.h"

namespace hlokit {

InstructionId InstructionNames::Find(StringId name, ComputationId computation) const {
  if (name.value >= instruction_of_name_.size()) return InstructionId();
  const InstructionId id = instruction_of_name_[name.value];
  // A name last defined in another computation is not visible here.
  if (!id.valid() || module_.record(id).parent != computation) return InstructionId();
  return id;
}

void InstructionNames::Define(StringId name, InstructionId id, bool nested) {
  Context& context = module_.context();
  if (name.value >= instruction_of_name_.size()) {
    instruction_of_name_.resize(context.strings.size() + context.strings.size() / 2 + 64);
  }
  InstructionId& slot = instruction_of_name_[name.value];
  if (slot.valid()) {
    may_collide_ = true;
    if (nested && module_.record(slot).parent != module_.record(id).parent) shadowed_.push_back({name, slot});
  }
  slot = id;
  const std::string_view text = context.str(name);
  // Numeric suffixes compare as numbers, so that "x.0" and "x.01" collide with "x" and "x.1".
  const size_t dot = text.rfind('.');
  if (dot != std::string_view::npos && dot + 1 < text.size() && text[dot + 1] == '0') may_collide_ = true;
  if (anonymous_ != nullptr && (module_.record(id).flags & kGeneratedName) == 0) anonymous_->GetUniqueName(name);
}

void InstructionNames::Leave(size_t shadowed) {
  while (shadowed_.size() > shadowed) {
    instruction_of_name_[shadowed_.back().first.value] = shadowed_.back().second;
    shadowed_.pop_back();
  }
}

StringId InstructionNames::Anonymous(Opcode opcode) {
  if (anonymous_ == nullptr) {
    anonymous_ = std::make_unique<NameUniquer>(&module_.context().strings);
    for (uint32_t i = 0; i < module_.instruction_id_bound(); ++i) {
      anonymous_->GetUniqueName(module_.record(InstructionId(i)).name);
    }
  }
  return anonymous_->GetUniqueName(StrCat(ToString(opcode), ".anon"));
}

}  // namespace hlokit
