// SPDX-License-Identifier: Apache-2.0
// The instructions that names refer to while a module is parsed.
#ifndef HLOKIT_PARSER_TEXT_INSTRUCTION_NAMES_H_
#define HLOKIT_PARSER_TEXT_INSTRUCTION_NAMES_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "ir/core/name_uniquer.h"
#include "ir/graph/module.h"

namespace hlokit {

class InstructionNames {
 public:
  explicit InstructionNames(const Module* module) : module_(*module) {}

  // Returns the instruction of that name in the computation, which is the innermost open one; invalid if there is none.
  InstructionId Find(StringId name, ComputationId computation) const;
  // Makes `id` the instruction of that name. If the definition is nested, in a computation within another one, the
  // instruction of the enclosing computation is shadowed until Leave.
  void Define(StringId name, InstructionId id, bool nested);
  // The number of shadowed names at the start of a nested computation, for Leave at its end.
  size_t shadowed() const { return shadowed_.size(); }
  void Leave(size_t shadowed);

  // Returns a new name for an instruction of the text without one.
  StringId Anonymous(Opcode opcode);
  // Returns true if two names may be equal, so that the names of the module must be made unique.
  bool may_collide() const { return may_collide_; }

 private:
  const Module& module_;
  std::vector<InstructionId> instruction_of_name_;  // by StringId, the innermost one
  std::vector<std::pair<StringId, InstructionId>> shadowed_;
  std::unique_ptr<NameUniquer> anonymous_;
  bool may_collide_ = false;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_TEXT_INSTRUCTION_NAMES_H_
