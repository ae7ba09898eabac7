// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/constant_folding.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/graph/instruction_queries.h"
#include "ir/graph/side_effects.h"
#include "ir/graph/traversal.h"
#include "ir/types/element_type.h"
#include "ir/types/float_types.h"
#include "passes/analysis/cost.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"

namespace hlokit {
namespace {

// Opcodes whose value depends on more than operands, or that are better left as they are.
constexpr Opcode kNotFolded[] = {
    Opcode::kAddDependency,
    Opcode::kAfterAll,
    Opcode::kBroadcast,
    Opcode::kConstant,
    Opcode::kCustomCall,
    Opcode::kDomain,
    Opcode::kFusion,  // final: its instructions were not worth storing one by one
    Opcode::kIota,
    Opcode::kOptimizationBarrier,
    Opcode::kParameter,
    Opcode::kPartitionId,
    Opcode::kReplicaId,
    Opcode::kRng,
    Opcode::kRngBitGenerator,
    Opcode::kRngGetAndUpdateState,
    Opcode::kStochasticConvert,
    Opcode::kUnknown,
};

// Opcodes that generate larger values from smaller ones: as the operand of one of these, a result need not be a
// constant of the module.
constexpr Opcode kGenerators[] = {Opcode::kBroadcast, Opcode::kIota};

template <size_t n>
bool Contains(const Opcode (&list)[n], Opcode opcode) {
  return std::find(std::begin(list), std::end(list), opcode) != std::end(list);
}

// A complex number with NaN only in the real part parses as NaN in both.
bool RoundTrips(const Literal& value) {
  if (!IsComplex(value.shape().element_type())) return true;
  return VisitType(value.shape().element_type(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
      for (size_t at = 0; at < value.size_bytes(); at += sizeof(T)) {
        T number;
        std::memcpy(&number, value.data() + at, sizeof(T));
        if (std::isnan(number.real()) && !std::isnan(number.imag())) return false;
      }
    }
    return true;
  });
}

class ConstantFolder {
 public:
  ConstantFolder(Module& module, const PassOptions& options, const PassContext& environment)
      : module_(module),
        max_elements_(options.Int("max-elements")),
        max_flops_(options.Int("max-flops")),
        environment_(environment),
        effects_(module) {
    // Computations of foldable instructions and calls to such computations only.
    foldable_.assign(module.computation_id_bound(), false);
    for (ComputationId id : ComputationPostOrder(module)) {
      bool ok = true;
      for (Instruction i : module.computation(id).instructions()) ok = ok && IsFoldableInCallee(i);
      foldable_[id.value] = ok;
    }
  }

  // Numbers of folded instructions, and of those that a limit or the evaluator prevented.
  int64_t folded = 0;
  int64_t failed = 0;

  void Run() {
    const ComputationRoles roles = RolesOf(module_);
    for (ComputationId id : ComputationPostOrder(module_)) {
      if (roles.fusion[id.value] || roles.async[id.value]) continue;
      // Operands first, so that chains fold in one pass.
      for (InstructionId at : PostOrder(module_.computation(id))) {
        if (MayFold(module_.instruction(at))) Fold(at);
      }
    }
  }

 private:
  bool IsFoldableInCallee(Instruction i) const {
    if (HasTrait(i.opcode(), kCollective) || HasTrait(i.opcode(), kAsyncChain) || effects_.Of(i)) {
      return false;
    }
    if (i.shape().has_dynamic_dims() || i.shape().has_unbounded_dims()) return false;
    if (i.opcode() == Opcode::kConstant && i.literal().elided) return false;
    if (Contains(kNotFolded, i.opcode()) && !HasTrait(i.opcode(), kLeaf) && !Contains(kGenerators, i.opcode())) {
      return false;
    }
    return CalleesAreFoldable(i);
  }

  bool CalleesAreFoldable(Instruction i) const {
    bool foldable = true;
    i.ForEachCallee([&](Computation callee) { foldable = foldable && callee.valid() && foldable_[callee.id().value]; });
    return foldable;
  }

  static bool IsKnown(Instruction i) {
    if (i.opcode() == Opcode::kConstant) return !i.literal().elided;
    if (i.opcode() == Opcode::kIota) return true;
    return i.opcode() == Opcode::kBroadcast && i.operand(0).opcode() == Opcode::kConstant &&
           !i.operand(0).literal().elided;
  }

  bool MayFold(Instruction i) {
    if (Contains(kNotFolded, i.opcode()) || !IsFoldableInCallee(i) || i.operand_count() == 0 || !i.shape().IsArray())
      return false;
    if (i.has_control_edges() || i.has(Attr::kSharding)) return false;
    int64_t stored = 0;  // elements of constants that may become dead
    bool mixed_floats = false;
    ElementType float_type = i.shape().element_type();
    for (Instruction operand : i.operands()) {
      if (!operand.shape().IsArray() || !IsKnown(operand) || operand.shape().element_count() > max_elements_)
        return false;
      if (operand.opcode() == Opcode::kConstant) stored = std::max(stored, operand.shape().element_count());
      const ElementType type = operand.shape().element_type();
      if (!IsFloat(type)) continue;
      mixed_floats = mixed_floats || (IsFloat(float_type) && type != float_type);
      float_type = type;
    }
    // The interpretation of mixed float types is up to the evaluator's options.
    if (mixed_floats && HasTrait(i.opcode(), kElementwise) && i.opcode() != Opcode::kConvert) return false;
    // Bound the growth of the module: broadcasts and the like generate many elements.
    constexpr int64_t kSmall = 64;
    const int64_t elements = i.shape().element_count();
    if (elements > max_elements_ || elements > std::max(stored, kSmall)) return false;
    if (!costs_) costs_.emplace(module_);
    const Cost& cost = costs_->Of(i);
    return cost.flops <= max_flops_ && cost.transcendentals <= max_flops_ && cost.bytes() / 16 <= max_flops_;
  }

  // Parsers ignore the element size of a constant's layout, as XLA does.
  Shape ConstantShape(Shape shape) {
    if (shape.layout() == nullptr || shape.layout()->extras == nullptr) return shape;
    LayoutExtras extras = *shape.layout()->extras;
    extras.element_size_in_bits = 0;
    ShapeTable& shapes = module_.context().shapes;
    return shapes.WithLayout(shape, shapes.Layout(shape.layout()->minor_to_major, extras));
  }

  void Fold(InstructionId id) {
    const absl::StatusOr<Literal> value = environment_.evaluate(module_.instruction(id));
    if (!value.ok() || !RoundTrips(*value)) {
      ++failed;
      return;
    }
    std::vector<InstructionId> operands;
    for (Instruction operand : module_.instruction(id).operands()) operands.push_back(operand.id());
    const Shape shape = ConstantShape(module_.instruction(id).shape());
    const LiteralId literal = module_.context().literals.AddArray(shape, value->data(), value->size_bytes());
    const InstructionId constant = Builder(&module_, id).Make(Opcode::kConstant, shape, {}, {}, literal.value);
    MergeMetadataOfComputations(module_, module_.instruction(id).called_computations(), constant);
    Replace(module_, id, constant);
    // Carry the metadata of operands used only here, then erase them.
    for (InstructionId operand : operands) EraseUnused(operand, constant);
    ++folded;
  }

  void EraseUnused(InstructionId id, InstructionId by) {
    std::vector<InstructionId> pending = {id};
    while (!pending.empty()) {
      const Instruction i = module_.instruction(pending.back());
      pending.pop_back();
      if (!i.record().parent.valid() || !IsUnused(i) || i.has_control_edges()) {
        continue;
      }
      for (Instruction operand : i.operands()) pending.push_back(operand.id());
      MergeMetadata(module_, i.id(), by);
      MergeMetadataOfComputations(module_, i.called_computations(), by);
      module_.Erase(i.id());
    }
  }

  Module& module_;
  const int64_t max_elements_;
  const int64_t max_flops_;
  const PassContext& environment_;
  const SideEffects effects_;
  std::optional<CostAnalysis> costs_;  // computed on demand
  std::vector<bool> foldable_;         // by computation id
};

}  // namespace

absl::StatusOr<bool> ConstantFolding::Run(Module& module) {
  if (!context().evaluate) return false;
  ConstantFolder constant_folder(module, options(), context());
  constant_folder.Run();
  if (constant_folder.folded != 0) Count("instructions folded", constant_folder.folded);
  if (constant_folder.failed != 0) Count("instructions without a value", constant_folder.failed);
  return constant_folder.folded != 0;
}

HLOKIT_PASS(ConstantFolding) {
  return {
      .name = "constant-folding",
      .category = "simplify",
      .summary = "evaluate instructions with constant operands",
      .doc =
          "Instructions whose operands are constants, or broadcasts of constants and iotas, are replaced by their "
          "values, computed by the interpreter. Calls, loops and conditionals too, if they contain no side effects "
          "or random numbers; fusions stay. Values that are much larger than the constants they are computed from "
          "are not folded, nor are those beyond the limits of evaluation.",
      .options = {{"max-elements", OptionInfo::Type::kInt, "1048576",
                   "fold no instruction whose result or operand has more elements"},
                  {"max-flops", OptionInfo::Type::kInt, "100000000", "fold no instruction that takes more operations"}},
      .create = MakePass<ConstantFolding>};
}

}  // namespace hlokit
