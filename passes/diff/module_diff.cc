// SPDX-License-Identifier: Apache-2.0
#include "passes/diff/module_diff.h"

#include <utility>

#include "ir/core/str_cat.h"
#include "ir/digest/content_digest.h"
#include "ir/digest/header_diff.h"
#include "ir/digest/instruction_diff.h"
#include "ir/text/printer.h"

namespace hlokit {
namespace {

constexpr std::string_view kAspectTexts[kAspects] = {
    "opcode", "shape",    "attributes",          "value",    "operands", "moved",
    "layout", "sharding", "frontend-attributes", "metadata", "names"};

Aspect AspectOf(InstructionDifference::Kind kind) {
  switch (kind) {
    case InstructionDifference::Kind::kOpcode:
      return Aspect::kOpcode;
    case InstructionDifference::Kind::kShape:
      return Aspect::kShape;
    case InstructionDifference::Kind::kLayout:
      return Aspect::kLayout;
    case InstructionDifference::Kind::kOperandCount:
      return Aspect::kOperands;
    case InstructionDifference::Kind::kAttribute:
      return Aspect::kAttributes;
    case InstructionDifference::Kind::kSharding:
      return Aspect::kSharding;
    case InstructionDifference::Kind::kFrontendAttributes:
      return Aspect::kFrontendAttributes;
    case InstructionDifference::Kind::kValue:
      return Aspect::kValue;
    case InstructionDifference::Kind::kMetadata:
      return Aspect::kMetadata;
  }
  return Aspect::kAttributes;
}

class Differ {
 public:
  Differ(const Module& a, const Module& b, const DiffOptions& options, ModuleDiff* diff)
      : a_(a), b_(b), options_(options), diff_(*diff), metadata_a_(a, print_), metadata_b_(b, print_) {
    fingerprint_.layout = !options.ignored.Contains(Aspect::kLayout);
    fingerprint_.sharding = !options.ignored.Contains(Aspect::kSharding);
    fingerprint_.frontend_attributes = !options.ignored.Contains(Aspect::kFrontendAttributes);
    fingerprint_.metadata = !options.ignored.Contains(Aspect::kMetadata);
  }

  void Run() {
    diff_.matching = MatchModules(a_, b_);
    diff_.header = HeaderDifferences(a_, b_, fingerprint_);
    if (!options_.ignored.Contains(Aspect::kName) && a_.name() != b_.name()) {
      diff_.header.push_back(StrCat("name: ", a_.name(), " vs ", b_.name()));
    }
    for (const Computation c : b_.computations()) {
      if (!diff_.matching.computation_in_a[c.id().value].valid()) diff_.added_computations.push_back(c);
      for (const Instruction i : c.instructions()) {
        const InstructionId in_a = diff_.matching.in_a[i.id().value];
        if (in_a.valid()) {
          ComparePair(a_.instruction(in_a), i);
        } else {
          diff_.added.push_back(i);
        }
      }
    }
    for (const Computation c : a_.computations()) {
      if (!diff_.matching.computation_in_b[c.id().value].valid()) diff_.removed_computations.push_back(c);
      for (const Instruction i : c.instructions()) {
        if (!diff_.matching.in_b[i.id().value].valid()) diff_.removed.push_back(i);
      }
    }
  }

 private:
  void ComparePair(Instruction a, Instruction b) {
    ChangedInstruction changed{a, b, {}, {}};
    const auto report = [&](Aspect aspect, std::string text) {
      if (options_.ignored.Contains(aspect)) return;
      changed.aspects.Add(aspect);
      if (!text.empty()) changed.differences.push_back(std::move(text));
    };
    if (!LooksEqual(a, b)) {
      for (InstructionDifference& d : InstructionDifferences(a, b, FingerprintOptions::All())) {
        const Aspect aspect = AspectOf(d.kind);
        if (aspect == Aspect::kMetadata && MetadataIsEqual(a, b)) continue;
        Count(aspect);
        report(aspect, std::move(d.text));
      }
    }
    if (std::string text = OperandDifference(a, b); !text.empty()) {
      Count(Aspect::kOperands);
      report(Aspect::kOperands, std::move(text));
    }
    if (diff_.matching.computation_in_b[a.parent().id().value] != b.parent().id()) {
      Count(Aspect::kMoved);
      report(Aspect::kMoved, StrCat("computation: ", a.parent().name(), " vs ", b.parent().name()));
    }
    if (a.name() != b.name()) {
      Count(Aspect::kName);
      report(Aspect::kName, StrCat("name: ", a.name(), " vs ", b.name()));
    }
    counted_ = {};
    if (changed.aspects.empty()) {
      ++diff_.unchanged;
    } else {
      diff_.changed.push_back(std::move(changed));
    }
  }

  // Counts an aspect once an instruction.
  void Count(Aspect aspect) {
    if (counted_.Contains(aspect)) return;
    counted_.Add(aspect);
    ++diff_.count_by_aspect[static_cast<size_t>(aspect)];
  }

  // Returns true if the contents are equal at a glance, by ids.
  bool LooksEqual(Instruction a, Instruction b) const {
    const InstructionRecord &x = a.record(), &y = b.record();
    if (x.opcode != y.opcode || x.shape != y.shape || x.operand_count != y.operand_count || x.payload != y.payload ||
        x.attr_count != y.attr_count || !MetadataIsEqual(a, b)) {
      return false;
    }
    if (a.called_computations().size() != b.called_computations().size()) return false;
    if (a.control_predecessors().size() != b.control_predecessors().size()) return false;
    for (size_t k = 0; k < x.attr_count; ++k) {
      const AttrValue p = a.attrs()[k], q = b.attrs()[k];
      if (p.attr != q.attr) return false;
      if (p.payload != q.payload && !NamesComputations(p.attr) && p.attr != Attr::kControlPredecessors) return false;
    }
    return true;
  }

  bool MetadataIsEqual(Instruction a, Instruction b) const {
    const MetadataId x = a.metadata_id(), y = b.metadata_id();
    if (!x.valid() || !y.valid()) return x.valid() == y.valid();
    // Ids are of the context, but stack frames are numbered by each module.
    if (x == y && a.metadata().stack_frame_id == 0) return true;
    return metadata_a_.OfMetadata(x) == metadata_b_.OfMetadata(y);
  }

  // Returns the first operand, callee or control predecessor that is not the counterpart, or "".
  std::string OperandDifference(Instruction a, Instruction b) const {
    const auto name = [](const Module& module, InstructionId id) {
      return id.valid() ? module.instruction(id).name() : std::string_view("a removed instruction");
    };
    for (int64_t k = 0; k < a.operand_count() && k < b.operand_count(); ++k) {
      const InstructionId expected = diff_.matching.in_b[a.operand(k).id().value];
      if (expected == b.operand(k).id()) continue;
      return StrCat("operand ", k, ": ", a.operand(k).name(),
                    expected.valid() ? StrCat(" (now ", name(b_, expected), ")") : std::string(" (removed)"), " vs ",
                    b.operand(k).name(), diff_.matching.in_a[b.operand(k).id().value].valid() ? "" : " (added)");
    }
    const std::vector<Computation> callees_a = a.called_computations(), callees_b = b.called_computations();
    for (size_t k = 0; k < callees_a.size() && k < callees_b.size(); ++k) {
      if (diff_.matching.computation_in_b[callees_a[k].id().value] == callees_b[k].id()) continue;
      return StrCat("callee: ", callees_a[k].name(), " vs ", callees_b[k].name());
    }
    const std::vector<Instruction> control_a = a.control_predecessors(), control_b = b.control_predecessors();
    if (control_a.size() < control_b.size()) {
      return StrCat("control predecessors: ", control_a.size(), " vs ", control_b.size());
    }
    for (const Instruction p : control_a) {
      const InstructionId expected = diff_.matching.in_b[p.id().value];
      bool found = false;
      for (const Instruction q : control_b) found = found || q.id() == expected;
      if (!found) return StrCat("control predecessor: ", p.name(), " vs none");
    }
    return "";
  }

  const Module &a_, &b_;
  const DiffOptions options_;
  ModuleDiff& diff_;
  const PrintOptions print_;
  FingerprintOptions fingerprint_;
  mutable ContentDigests metadata_a_, metadata_b_;
  Aspects counted_;
};

}  // namespace

std::string_view ToString(Aspect aspect) { return kAspectTexts[static_cast<size_t>(aspect)]; }

std::optional<Aspect> AspectFromText(std::string_view text) {
  for (size_t k = 0; k < kAspects; ++k) {
    if (kAspectTexts[k] == text) return static_cast<Aspect>(k);
  }
  return std::nullopt;
}

ModuleDiff CompareModules(const Module& a, const Module& b, const DiffOptions& options) {
  ModuleDiff diff;
  Differ(a, b, options, &diff).Run();
  return diff;
}

}  // namespace hlokit
