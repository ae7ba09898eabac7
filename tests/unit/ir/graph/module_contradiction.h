// SPDX-License-Identifier: Apache-2.0
// What a module keeps beside operands, attributes and order, checked against what follows from them.
#ifndef HLOKIT_TESTS_UNIT_IR_GRAPH_MODULE_CONTRADICTION_H_
#define HLOKIT_TESTS_UNIT_IR_GRAPH_MODULE_CONTRADICTION_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/graph/module.h"

namespace hlokit {

namespace internal {

// Checks the lists of a computation: order, number of instructions, parameters, root. Counts in `listed` how often each
// instruction is in an order.
inline std::string ContradictionIn(const Module& module, Computation c, std::vector<int>* listed) {
  int64_t count = 0;
  InstructionId previous;
  for (InstructionId id = c.record().first; id.valid(); id = module.record(id).next) {
    const InstructionRecord& r = module.record(id);
    if (r.parent != c.id()) return StrCat("instruction ", id.value, " is in the order of another computation");
    if (r.previous != previous) return StrCat("instruction ", id.value, " has a wrong predecessor in the order");
    if (++(*listed)[id.value] > 1) return StrCat("instruction ", id.value, " is in the order twice");
    previous = id;
    ++count;
  }
  if (c.record().last != previous) return StrCat("computation ", c.id().value, " has a wrong last instruction");
  if (c.instruction_count() != count) return StrCat("computation ", c.id().value, " has a wrong count");
  for (int64_t k = 0; k < c.parameter_count(); ++k) {
    const Instruction p = c.parameter(k);
    if (!p.valid()) continue;
    if (p.record().parent != c.id() || p.opcode() != Opcode::kParameter || p.parameter_number() != k) {
      return StrCat("slot ", k, " of the parameters holds another instruction");
    }
  }
  if (c.root().valid() && c.root().record().parent != c.id()) return "a root is erased";
  return "";
}

// Checks the ring of uses of an instruction, each of which it takes from `slots`: user by operand slot.
inline std::string ContradictionInUses(const Module& module, Instruction i, std::map<uint32_t, uint32_t>* slots) {
  const UseId first = i.record().first_use;
  for (UseId at = first; at.valid();) {
    const Use& use = module.use(at);
    const auto slot = slots->find(at.value);
    if (slot == slots->end()) return StrCat("instruction ", i.id().value, " has a use that is none, or twice");
    if (use.def != i.id()) return StrCat("instruction ", i.id().value, " lists the use of another one");
    if (use.user.value != slot->second) return StrCat("instruction ", i.id().value, " has a use with a wrong user");
    if (module.use(use.next).previous != at) return StrCat("the uses of instruction ", i.id().value, " are no ring");
    slots->erase(slot);
    at = use.next == first ? UseId() : use.next;
  }
  return "";
}

}  // namespace internal

// Returns the first contradiction in a module, "" if there is none.
inline std::string Contradiction(const Module& module) {
  const size_t bound = module.instruction_id_bound();
  std::vector<int> listed(bound, 0);
  std::map<uint32_t, uint32_t> slots;                    // operand slots of live instructions, with their users
  std::map<uint32_t, std::vector<uint32_t>> successors;  // by predecessor, in the order of ids
  for (Computation c : module.computations()) {
    const std::string found = internal::ContradictionIn(module, c, &listed);
    if (!found.empty()) return found;
  }
  for (uint32_t k = 0; k < bound; ++k) {
    const Instruction i = module.instruction(InstructionId(k));
    const InstructionRecord& r = i.record();
    if (r.parent.valid() != (listed[k] == 1))
      return StrCat("instruction ", k, " is live, or in an order, but not both");
    if (!r.parent.valid()) {
      if (r.operand_count != 0 || r.attr_count != 0)
        return StrCat("erased instruction ", k, " has operands or attributes");
      if (!i.control_successors().empty()) return StrCat("erased instruction ", k, " has control successors");
      continue;
    }
    for (uint32_t n = 0; n < r.operand_count; ++n) {
      if (i.operand(n).record().parent != r.parent) return StrCat("instruction ", k, " has a foreign operand");
      if (!slots.emplace(r.operand_begin + n, k).second) return StrCat("instruction ", k, " shares an operand slot");
    }
    int order = -1;
    for (const AttrValue& value : i.attrs()) {
      const int place = AttrOrder(r.opcode, value.attr);
      if (place <= order) return StrCat("instruction ", k, " has attributes twice, or not in print order");
      order = place;
    }
    for (Instruction p : i.control_predecessors()) {
      if (p.record().parent != r.parent) return StrCat("instruction ", k, " has a foreign control predecessor");
      successors[p.id().value].push_back(k);
    }
  }
  for (uint32_t k = 0; k < bound; ++k) {
    const Instruction i = module.instruction(InstructionId(k));
    if (!i.record().parent.valid()) continue;
    const std::string found = internal::ContradictionInUses(module, i, &slots);
    if (!found.empty()) return found;
    std::vector<uint32_t> kept;
    for (Instruction successor : i.control_successors()) kept.push_back(successor.id().value);
    std::sort(kept.begin(), kept.end());
    if (kept != successors[k]) {
      return StrCat("instruction ", k, " has ", kept.size(), " control successors, should have ", successors[k].size(),
                    ", or others");
    }
    if (!kept.empty() && !module.may_have_control_edges()) return "there are control edges";
  }
  if (!slots.empty()) return StrCat("operand slot ", slots.begin()->first, " is in no list of uses");
  return "";
}

}  // namespace hlokit

#endif  // HLOKIT_TESTS_UNIT_IR_GRAPH_MODULE_CONTRADICTION_H_
