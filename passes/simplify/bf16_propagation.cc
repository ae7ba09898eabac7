// SPDX-License-Identifier: Apache-2.0
// A leaf is an array of f32: the result of an instruction, or an element of its tuple result. Rounding a leaf early
// equals rounding it late if its elements are only moved, selected, or combined by min and max in between: rounding is
// monotonic. Leaves that must have one type, those of a loop state for example, form a class. The analysis is
// optimistic: all classes of forwarded leaves are narrow at first. Classes with a use other than forwarding and
// rounding become wide, then those that flow into them, to a fixpoint.
#include "passes/simplify/bf16_propagation.h"

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/builder/builder.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/dataflow_analysis.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"

namespace hlokit {
namespace {

bool IsF32(Shape shape) {
  return shape.IsArray() && shape.element_type() == ElementType::kF32 && !shape.has_dynamic_dims() &&
         !shape.has_unbounded_dims();
}

// Returns true if elements of operand `index`, which has the type of the result, become elements of the result.
bool GivesElements(Instruction i, int64_t index) {
  if (OpcodeSet{Opcode::kConvert, Opcode::kBitcast}.Contains(i.opcode())) return false;
  const OperandIndexRange range = ElementOperands(i.opcode(), i.operand_count());
  return index >= range.first && index < range.last;
}

// Returns true if the operation only moves or selects elements of its operands.
bool MovesOrChooses(Instruction i) {
  if (!i.shape().IsArray() || (HasTrait(i.opcode(), kCollective) && i.operand_count() != 1)) return false;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    if (GivesElements(i, k)) return i.operand(k).shape().element_type() == ElementType::kF32;
  }
  return false;
}

class PrecisionPropagation {
 public:
  explicit PrecisionPropagation(Module& module) : module_(module), graph_(module), roles_(RolesOf(module)) {
    first_.assign(module.instruction_id_bound(), 0);
    uint32_t parts = 0;
    for (Computation c : module.computations()) {
      for (Instruction i : c.instructions()) {
        first_[i.id().value] = parts;
        parts += i.shape().IsTuple() ? static_cast<uint32_t>(i.shape().tuple_size()) : 1;
      }
    }
    class_.resize(parts);
    std::iota(class_.begin(), class_.end(), 0);
    wide_.assign(parts, 0);
    rounded_.assign(parts, 0);
  }

  // Returns the number of leaves that became narrow.
  int64_t Run() {
    for (Computation c : module_.computations()) {
      for (Instruction i : c.instructions()) Join(i);
    }
    for (Computation c : module_.computations()) {
      const bool plain = graph_.IsSequential(c) && !roles_.fusion[c.id().value] && !roles_.async[c.id().value];
      for (Instruction i : c.instructions()) CollectConstraints(i, plain);
    }
    Spread();
    int64_t narrowed = 0;
    for (Computation c : module_.computations()) {
      std::vector<InstructionId> instructions;
      for (Instruction i : c.instructions()) instructions.push_back(i.id());
      for (InstructionId id : instructions) narrowed += Narrow(id);
    }
    if (narrowed != 0) DropConversions();
    return narrowed;
  }

 private:
  static int64_t Size(Instruction i) { return i.shape().IsTuple() ? i.shape().tuple_size() : 1; }
  static Shape ShapeOf(Instruction i, int64_t part) {
    return i.shape().IsTuple() ? i.shape().element(part) : i.shape();
  }
  uint32_t Part(Instruction i, int64_t part) const { return first_[i.id().value] + static_cast<uint32_t>(part); }
  uint32_t ClassOf(Instruction i, int64_t part = 0) { return Find(Part(i, part)); }
  uint32_t Find(uint32_t part) {
    while (class_[part] != part) part = class_[part] = class_[class_[part]];
    return part;
  }
  void Union(Instruction a, int64_t part_of_a, Instruction b, int64_t part_of_b) {
    class_[ClassOf(a, part_of_a)] = ClassOf(b, part_of_b);
  }

  // Unites leaves that must have one type.
  void Join(Instruction i) {
    if (i.opcode() == Opcode::kGetTupleElement && !i.shape().IsTuple()) {
      Union(i, 0, i.operand(0), i.int_attr(Attr::kIndex));
    }
    if (i.opcode() != Opcode::kWhile || !i.shape().IsTuple()) return;
    const Computation condition = i.computation_attr(Attr::kCondition), body = i.computation_attr(Attr::kBody);
    for (Instruction other : {i.operand(0), condition.parameter(0), body.parameter(0), body.root()}) {
      for (int64_t k = 0; k < Size(i) && Size(other) == Size(i); ++k) Union(i, k, other, k);
    }
  }

  // Returns true if the instruction only forwards its leaves, so that they may be narrow.
  bool ForwardsValue(Instruction i) {
    if (i.has(Attr::kSharding) || !IsFlat(i.shape())) return false;
    if (OpcodeSet{Opcode::kTuple, Opcode::kWhile}.Contains(i.opcode())) return true;
    if (i.opcode() == Opcode::kGetTupleElement) return !i.shape().IsTuple();  // leaves of nested tuples have no classes
    return i.opcode() == Opcode::kParameter ? IsLoopState(i) : MovesOrChooses(i);
  }

  // Returns true for a parameter of computations that only loops call.
  bool IsLoopState(Instruction parameter) {
    const absl::Span<const CallSite> sites = graph_.caller_callsites(parameter.parent());
    for (const CallSite& site : sites) {
      if (module_.record(site.caller).opcode != Opcode::kWhile) return false;
    }
    return !sites.empty() && parameter.shape().IsTuple();
  }

  // Finds the leaves of `i` that must be wide, and records the dependences between leaves.
  void CollectConstraints(Instruction i, bool plain) {
    const bool carries = plain && ForwardsValue(i);
    for (int64_t k = 0; k < Size(i); ++k) {
      if (!carries || !IsF32(ShapeOf(i, k))) wide_[ClassOf(i, k)] = 1;
    }
    if (i.is_root() && !IsLoopBody(i.parent())) {
      for (int64_t k = 0; k < Size(i); ++k) wide_[ClassOf(i, k)] = 1;
    }
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      const Instruction operand = i.operand(k);
      if (carries && OpcodeSet{Opcode::kGetTupleElement, Opcode::kWhile}.Contains(i.opcode())) continue;  // one class
      if (carries && i.opcode() == Opcode::kTuple) {
        AddFlowEdge(operand, i, k);
      } else if (carries && GivesElements(i, k)) {
        AddFlowEdge(operand, i, 0);
      } else if (plain && i.opcode() == Opcode::kConvert && i.shape().element_type() == ElementType::kBF16 &&
                 IsF32(operand.shape())) {
        rounded_[ClassOf(operand)] = 1;
      } else {
        for (int64_t part = 0; part < Size(operand); ++part) wide_[ClassOf(operand, part)] = 1;
      }
    }
  }

  bool IsLoopBody(Computation c) {
    for (const CallSite& site : graph_.caller_callsites(c)) {
      if (module_.record(site.caller).opcode != Opcode::kWhile) return false;
    }
    return !c.is_entry() && c.root().shape().IsTuple();
  }

  // Elements of the array `from` become elements of leaf `part` of `to`: `from` is wide if the leaf is.
  void AddFlowEdge(Instruction from, Instruction to, int64_t part) {
    const uint32_t source = ClassOf(from), target = ClassOf(to, part);
    into_.emplace_back(target, source);
    // The conversion must not cost more than it saves.
    const Shape shape = ShapeOf(to, part);
    if (shape.IsArray() && from.shape().IsArray() && from.shape().element_count() > shape.element_count()) {
      from_larger_.emplace_back(source, target);
    }
  }

  // Decides for all classes: wide propagates from users to operands, and to users of larger wide arrays. Narrow classes
  // must then end in a rounding somewhere.
  void Spread() {
    const size_t n = class_.size();
    std::vector<std::vector<uint32_t>> sources(n), targets(n), smaller(n);
    for (const auto& [target, source] : into_) {
      sources[target].push_back(source);
      targets[source].push_back(target);
    }
    for (const auto& [source, target] : from_larger_) smaller[source].push_back(target);
    std::vector<uint32_t> open;
    for (uint32_t c = 0; c < n; ++c) {
      if (class_[c] == c && wide_[c]) open.push_back(c);
    }
    const auto widen = [&](const std::vector<uint32_t>& classes) {
      for (uint32_t c : classes) {
        if (!wide_[c]) open.push_back(c);
        wide_[c] = 1;
      }
    };
    while (!open.empty()) {
      const uint32_t c = open.back();
      open.pop_back();
      widen(sources[c]);
      widen(smaller[c]);
    }
    narrow_.assign(n, 0);
    const auto narrow = [&](uint32_t c) {
      if (wide_[c] || narrow_[c]) return;
      narrow_[c] = 1;
      open.push_back(c);
    };
    for (uint32_t c = 0; c < n; ++c) {
      if (class_[c] == c && rounded_[c]) narrow(c);
    }
    while (!open.empty()) {
      const uint32_t c = open.back();
      open.pop_back();
      for (uint32_t s : sources[c]) narrow(s);
      for (uint32_t t : targets[c]) narrow(t);
    }
  }
  bool IsNarrow(Instruction i, int64_t part = 0) { return narrow_[ClassOf(i, part)] != 0; }

  // Retypes the narrow leaves of an instruction, and rounds the operands that are not narrow.
  int64_t Narrow(InstructionId id) {
    const Instruction i = module_.instruction(id);
    ShapeTable& shapes = module_.context().shapes;
    std::vector<Shape> elements;
    int64_t narrowed = 0;
    for (int64_t k = 0; k < Size(i); ++k) {
      Shape shape = ShapeOf(i, k);
      if (IsNarrow(i, k)) {
        shape = shapes.WithElementType(shape, ElementType::kBF16);
        ++narrowed;
      }
      elements.push_back(shape);
    }
    if (narrowed == 0) return 0;
    const bool is_tuple = i.shape().IsTuple();
    module_.SetShape(id, is_tuple ? shapes.Tuple(elements) : elements[0]);
    if (OpcodeSet{Opcode::kGetTupleElement, Opcode::kWhile}.Contains(i.opcode())) return narrowed;
    for (int64_t k = 0; k < module_.instruction(id).operand_count(); ++k) {
      const Instruction user = module_.instruction(id), operand = user.operand(k);
      const bool given = user.opcode() == Opcode::kTuple ? IsNarrow(user, k) : GivesElements(user, k);
      if (given && operand.shape().element_type() == ElementType::kF32 && first_.size() > operand.id().value &&
          !IsNarrow(operand)) {
        module_.ReplaceOperand(id, k, Rounded(operand, id));
      }
    }
    return narrowed;
  }

  // Returns the existing conversion that rounds the value forwarded by `user`, if it is near.
  Instruction ConversionBehind(Instruction user) {
    std::vector<Instruction> open = {user};
    for (size_t k = 0; k < open.size() && open.size() < 64; ++k) {
      for (const auto& use : open[k].uses()) {
        if (use.user.id().value >= first_.size()) continue;
        if (use.user.opcode() == Opcode::kConvert && use.user.shape().element_type() == ElementType::kBF16) {
          return use.user;
        }
        if (use.user.shape().IsArray() && IsNarrow(use.user)) open.push_back(use.user);
      }
    }
    return {};
  }

  // Returns `value` rounded, computed before its first user `user`.
  InstructionId Rounded(Instruction value, InstructionId user) {
    const auto [at, inserted] = rounded_values_.try_emplace(value.id().value, InstructionId());
    if (!inserted) return at->second;
    const Shape shape = module_.context().shapes.WithElementType(value.shape(), ElementType::kBF16);
    const InstructionId source = value.id();
    const Instruction conversion = ConversionBehind(module_.instruction(user));
    MetadataId metadata = conversion.valid() ? conversion.metadata_id() : MetadataId();
    if (!metadata.valid()) metadata = module_.record(source).metadata;
    if (!metadata.valid()) metadata = module_.record(user).metadata;
    Builder builder(&module_, value.parent().id());
    builder.SetInsertionPointAfter(source);
    builder.SetMetadata(metadata);
    const InstructionId made = builder.Make(Opcode::kConvert, shape, {source});
    return at->second = made;
  }

  // Removes conversions of bf16 to bf16.
  void DropConversions() {
    for (Computation c : module_.computations()) {
      for (InstructionId id = c.record().first, next; id.valid(); id = next) {
        next = module_.record(id).next;
        const Instruction i = module_.instruction(id);
        if (i.opcode() != Opcode::kConvert || i.shape() != i.operand(0).shape() ||
            i.shape().element_type() != ElementType::kBF16 || id.value >= first_.size() ||
            i.operand(0).id().value >= first_.size() || !IsNarrow(i.operand(0)) || i.has_control_edges()) {
          continue;
        }
        Replace(module_, id, i.operand(0).id());
      }
    }
  }

  Module& module_;
  const CallGraph graph_;
  const ComputationRoles roles_;
  std::vector<uint32_t> first_;  // by InstructionId: its first leaf
  std::vector<uint32_t> class_;  // union-find: leaves in one tree form a class, identified by its root
  std::vector<uint8_t> wide_;    // by class: has a use that needs f32, or is defined by something other than forwarding
  std::vector<uint8_t> rounded_;                            // by class: is converted to bf16 somewhere
  std::vector<uint8_t> narrow_;                             // by class: the decision
  std::vector<std::pair<uint32_t, uint32_t>> into_;         // target, source
  std::vector<std::pair<uint32_t, uint32_t>> from_larger_;  // source, target
  absl::flat_hash_map<uint32_t, InstructionId> rounded_values_;
};

}  // namespace

absl::StatusOr<bool> Bf16Propagation::Run(Module& module) {
  const int64_t narrowed = PrecisionPropagation(module).Run();
  Count("arrays narrowed", narrowed);
  return narrowed != 0;
}

HLOKIT_PASS(Bfloat16Propagation) {
  return {.name = "bfloat16-propagation",
          .category = "simplify",
          .summary = "propagate bf16 to values that are only converted to bf16",
          .doc =
              "Values of f32 that only pass through data movement, selections, minima and maxima, gathering "
              "collectives and loop states, and whose uses all end in a conversion to bf16, are rounded at "
              "their definition: half the bytes, and no result changes. No operation changes its precision.",
          .example = R"(ENTRY e {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  x = f32[8] exponential(p), metadata={op_name="f/exp"}
  both = f32[16] concatenate(x, q), dimensions={0}, metadata={op_name="f/both"}
  m = f32[16] maximum(both, both), metadata={op_name="f/max"}
  ROOT r = bf16[16] convert(m), metadata={op_name="f/narrow"}
})",
          .create = MakePass<Bf16Propagation>};
}

}  // namespace hlokit
