// SPDX-License-Identifier: Apache-2.0
// The first pass of the verifier: checks of each instruction in isolation, and of the lists of a computation.
#include <array>
#include <bitset>

#include "ir/core/str_cat.h"
#include "ir/verify/context.h"

namespace hlokit::verify_internal {
namespace {

using AttrSet = std::bitset<128>;
static_assert(kAttrCount <= 128);

struct AttrSets {
  AttrSet allowed;
  AttrSet required;
};

const AttrSets& AttrSetsOf(Opcode opcode) {
  static const auto* const sets = [] {
    auto* all = new std::array<AttrSets, kOpcodeCount + 1>;
    for (size_t o = 0; o <= kOpcodeCount; ++o) {
      AttrSets& s = (*all)[o];
      for (size_t a = 0; a < kAttrCount; ++a) {
        // Unknown opcodes accept any attribute.
        if (o == kOpcodeCount || IsCommon(static_cast<Attr>(a))) s.allowed.set(a);
      }
      for (const AttrSpec& spec : InfoOf(static_cast<Opcode>(o)).attributes) {
        if (spec.presence == AttrSpec::kLegacy) continue;
        s.allowed.set(static_cast<size_t>(spec.attr));
        if (spec.presence == AttrSpec::kRequired) s.required.set(static_cast<size_t>(spec.attr));
      }
    }
    return all;
  }();
  return (*sets)[static_cast<size_t>(opcode)];
}

// Names seen so far, by interned string.
class NameSet {
 public:
  explicit NameSet(const Context& context) : seen_(context.strings.size()) {}
  bool Insert(StringId name) {
    if (!name.valid() || name.value >= seen_.size()) return true;
    const bool fresh = seen_[name.value] == 0;
    seen_[name.value] = 1;
    return fresh;
  }

 private:
  std::vector<uint8_t> seen_;
};

class StructureCheck {
 public:
  explicit StructureCheck(VerifierContext& v)
      : v_(v), module_(v.module), instruction_names_(v.module.context()), computation_names_(v.module.context()) {}

  bool Run() {
    const Computation entry = module_.entry();
    if (!entry.valid() || !IsLive(entry.id())) {
      v_.ReportHeader(DiagnosticKind::kUndefinedComputation, "the module has no entry computation");
      return false;
    }
    for (uint32_t id = 0; id < module_.computation_id_bound() && !v_.limit_reached(); ++id) {
      const Computation c = module_.computation(ComputationId(id));
      if (!c.record().erased) CheckComputation(c);
    }
    if (safe_ && v_.IsFused(entry)) {
      v_.Report(entry, DiagnosticKind::kCallSignature, "is the entry computation, but is called by a fusion");
    }
    return safe_;
  }

 private:
  bool IsLive(ComputationId id) const {
    return id.value < module_.computation_id_bound() && !module_.record(id).erased;
  }
  bool IsInside(int64_t id, Computation c) const {
    return id >= 0 && static_cast<uint64_t>(id) < module_.instruction_id_bound() &&
           module_.record(InstructionId(static_cast<uint32_t>(id))).parent == c.id();
  }

  void CheckComputation(Computation c) {
    const ComputationRecord& record = c.record();
    if (!computation_names_.Insert(record.name)) {
      v_.Report(c, DiagnosticKind::kDuplicateName, "redefinition of a computation name");
    }
    int64_t parameters = 0;
    for (Instruction i : c.instructions()) {
      if (v_.limit_reached()) return;
      v_.position(i.id()) = ++position_;
      CheckInstruction(i, c);
      if (i.opcode() == Opcode::kParameter) ++parameters;
    }
    if (!record.root.valid() || !IsInside(record.root.value, c)) {
      safe_ = false;
      v_.Report(c, DiagnosticKind::kUndefinedOperand, "has no root instruction");
    }
    CheckParameters(c, parameters);
  }

  void CheckParameters(Computation c, int64_t instructions) {
    const std::vector<InstructionId>& slots = c.record().parameters;
    for (size_t n = 0; n < slots.size(); ++n) {
      const bool fits = slots[n].valid() && IsInside(slots[n].value, c) &&
                        module_.record(slots[n]).opcode == Opcode::kParameter && module_.record(slots[n]).payload == n;
      if (fits) continue;
      safe_ = false;
      v_.Report(c, DiagnosticKind::kBadParameter, StrCat("has no parameter ", n));
      return;
    }
    // Slots hold distinct numbers, so a surplus instruction shares the number of another.
    if (static_cast<int64_t>(slots.size()) != instructions) {
      safe_ = false;
      v_.Report(
          c, DiagnosticKind::kBadParameter,
          StrCat("has ", Counted(instructions, "parameter"), ", but ", slots.size(), " distinct parameter numbers"));
    }
  }

  void CheckInstruction(Instruction i, Computation c) {
    const InstructionRecord& record = i.record();
    if (!instruction_names_.Insert(record.name)) {
      v_.Report(i, DiagnosticKind::kDuplicateName, "redefinition of an instruction name");
    }
    const OpcodeInfo& info = InfoOf(record.opcode);
    const int64_t count = record.operand_count;
    if (count < info.min_operands || (info.max_operands != kVariadic && count > info.max_operands)) {
      v_.MarkInvalid(i);
      const bool few = count < info.min_operands;
      const std::string_view bound = info.min_operands == info.max_operands ? "" : few ? "at least " : "at most ";
      v_.Report(i, DiagnosticKind::kOperandCount,
                StrCat("has ", Counted(count, "operand"), "; expected ", bound,
                       static_cast<int64_t>(few ? info.min_operands : info.max_operands), " for ", i.opcode_text()));
    }
    for (Instruction operand : i.operands()) CheckEdge(i, c, operand.id().value, "operand");
    CheckAttrs(i, c);
  }

  // Checks an operand or control predecessor of `i`.
  void CheckEdge(Instruction i, Computation c, int64_t id, std::string_view what) {
    if (!IsInside(id, c)) {
      safe_ = false;
      v_.MarkInvalid(i);
      v_.Report(i, DiagnosticKind::kUndefinedOperand, StrCat("has an ", what, " outside of its computation"));
      return;
    }
    if (v_.position(InstructionId(static_cast<uint32_t>(id))) == 0 || id == i.id().value) {
      v_.callers(c.id()).has_forward_operands = true;
    }
  }

  void CheckAttrs(Instruction i, Computation c) {
    const AttrSets& sets = AttrSetsOf(i.opcode());
    AttrSet present;
    for (const AttrValue& value : i.attrs()) {
      const size_t index = static_cast<size_t>(value.attr);
      if (!sets.allowed[index] || present[index]) {
        v_.MarkInvalid(i);
        v_.Report(i, present[index] ? DiagnosticKind::kDuplicateAttribute : DiagnosticKind::kUnknownAttribute,
                  StrCat(present[index] ? "duplicate attribute `" : "unknown attribute `", ToString(value.attr),
                         "` for ", i.opcode_text()));
      }
      present.set(index);
      CheckIds(i, c, value);
    }
    const AttrSet missing = sets.required & ~present;
    if (missing.none()) return;
    v_.MarkInvalid(i);
    for (size_t a = 0; a < kAttrCount; ++a) {
      if (!missing[a]) continue;
      v_.Report(i, DiagnosticKind::kMissingAttribute,
                StrCat("missing attribute `", ToString(static_cast<Attr>(a)), "` for ", i.opcode_text()));
    }
  }

  void CheckIds(Instruction i, Computation c, const AttrValue& value) {
    const AttrType type = InfoOf(value.attr).type;
    if (type == AttrType::kSharding) {
      CheckSharding(v_, i, ListId(value.payload));
    } else if (type == AttrType::kOrigin) {
      CheckOriginalValue(v_, i, ListId(value.payload));
    } else if (type == AttrType::kComputation) {
      CheckCall(i, value.attr, value.payload);
    } else if (type == AttrType::kComputationList) {
      for (int64_t id : module_.context().list(ListId(value.payload))) CheckCall(i, value.attr, id);
    } else if (type == AttrType::kInstructionList) {
      for (int64_t id : module_.context().list(ListId(value.payload))) CheckEdge(i, c, id, "ordering constraint");
    }
  }

  void CheckCall(Instruction i, Attr attr, int64_t id) {
    if (id < 0 || id >= ComputationId::kNone || !IsLive(ComputationId(static_cast<uint32_t>(id)))) {
      safe_ = false;
      v_.Report(i, DiagnosticKind::kUndefinedComputation,
                StrCat("`", ToString(attr), "` refers to an undefined computation"));
      return;
    }
    const ComputationId callee(static_cast<uint32_t>(id));
    v_.call_edges.push_back({i.id(), callee});
    Callers& callers = v_.callers(callee);
    ++callers.count;
    if (i.opcode() == Opcode::kFusion) {
      if (callers.fusions++ == 0) callers.fusion = i.id();
    } else if (i.opcode() == Opcode::kAsyncStart) {
      if (callers.async_starts++ == 0) callers.async_start = i.id();
    } else if (attr == Attr::kBody) {
      if (callers.loops++ == 0) callers.loop = i.id();
    }
  }

  VerifierContext& v_;
  const Module& module_;
  NameSet instruction_names_;
  NameSet computation_names_;
  uint32_t position_ = 0;
  bool safe_ = true;
};

}  // namespace

bool CheckStructure(VerifierContext& v) { return StructureCheck(v).Run(); }

}  // namespace hlokit::verify_internal
