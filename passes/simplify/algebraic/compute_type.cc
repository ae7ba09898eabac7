// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/algebraic/compute_type.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"
#include "passes/rewrite/reducer.h"

namespace hlokit {
namespace {

bool HasNarrow(Shape shape, const ComputeType& type) {
  if (shape.IsArray()) return type.IsNarrow(shape.element_type());
  return std::any_of(shape.elements().begin(), shape.elements().end(),
                     [&](Shape element) { return HasNarrow(element, type); });
}

// Returns true for an array or a tuple of arrays.
bool IsArrayOrArrays(Shape shape) {
  if (!shape.IsTuple()) return shape.IsArray();
  return std::all_of(shape.elements().begin(), shape.elements().end(), [](Shape element) { return element.IsArray(); });
}

// Returns the shape, an array or a tuple of arrays, with the wide type.
Shape Widened(ShapeTable& shapes, Shape shape, const ComputeType& type) {
  if (shape.IsArray()) return HasNarrow(shape, type) ? shapes.WithElementType(shape, type.wide) : shape;
  std::vector<Shape> elements;
  for (Shape element : shape.elements()) elements.push_back(Widened(shapes, element, type));
  return shapes.Tuple(elements);
}

// Returns true if Clone can compute what `function` does in the wide type.
bool IsClonable(Computation function) {
  for (Instruction i : function.instructions()) {
    const bool simple = HasTrait(i.opcode(), kLeaf) || HasTrait(i.opcode(), kElementwise) ||
                        (i.opcode() == Opcode::kTuple && i.is_root());
    if (!simple || i.has_control_edges() || (i.opcode() != Opcode::kTuple && !i.shape().IsArray())) return false;
  }
  return true;
}

// Returns true if `function` is one operation on its two parameters.
bool IsOneOperation(Computation function) {
  const Instruction root = CombinationOf(function);
  return root.valid() && function.instruction_count() == 3 && HasTrait(root.opcode(), kElementwise) &&
         root.operand(0).shape() == root.shape() && root.operand(1).shape() == root.shape();
}

// Clones a function of elements for operands and results of the wide type whose values the narrow type can represent.
class FunctionWidener {
 public:
  FunctionWidener(Module* module, const ComputeType* type, StringId name)
      : module_(*module), type_(*type), builder_(module, module->AddComputation(name)) {}

  ComputationId Clone(Computation function) {
    for (int64_t k = 0; k < function.parameter_count(); ++k) {
      const Instruction parameter = function.parameter(k);
      builder_.WithName(parameter.name()).SetMetadata(parameter.metadata_id());
      Set(parameter, builder_.Make(Opcode::kParameter, Widened(builder_.shapes(), parameter.shape(), type_), {}, {},
                                   static_cast<uint32_t>(k)));
    }
    for (InstructionId id : PostOrder(function)) {
      const Instruction i = module_.instruction(id);
      if (i.opcode() != Opcode::kParameter) Add(i);
    }
    const Instruction root = function.root();
    InstructionId result = Wide(root);
    if (root.opcode() == Opcode::kTuple) {
      std::vector<InstructionId> elements;
      for (int64_t k = 0; k < root.operand_count(); ++k) elements.push_back(Wide(root.operand(k)));
      result = builder_.MakeTuple(elements);
    }
    builder_.SetRoot(result);
    return builder_.computation();
  }

 private:
  // The clone of a value: in its own type and in the wide one, each made when it is needed.
  struct Value {
    InstructionId own, wide;
  };

  bool IsNarrow(Instruction i) const { return i.shape().IsArray() && type_.IsNarrow(i.shape().element_type()); }

  void Set(Instruction i, InstructionId made) {
    const bool widened = IsNarrow(i) && module_.instruction(made).shape().element_type() == type_.wide;
    values_[i.id().value] = widened ? Value{InstructionId(), made} : Value{made, InstructionId()};
  }
  InstructionId Own(Instruction i) {
    Value& value = values_[i.id().value];
    if (!value.own.valid()) value.own = builder_.MakeConvert(value.wide, i.shape().element_type());
    return value.own;
  }
  InstructionId Wide(Instruction i) {
    if (i.opcode() == Opcode::kTuple) return InstructionId();
    if (!IsNarrow(i)) return Own(i);
    Value& value = values_[i.id().value];
    if (!value.wide.valid()) value.wide = builder_.MakeConvert(value.own, type_.wide);
    return value.wide;
  }

  void Add(Instruction i) {
    if (i.opcode() == Opcode::kTuple) return;
    bool computes = !KeepsElements(i.opcode()) && HasTrait(i.opcode(), kElementwise);
    bool narrow = IsNarrow(i);
    for (int64_t k = 0; k < i.operand_count(); ++k) narrow |= IsNarrow(i.operand(k));
    computes &= narrow;
    std::vector<InstructionId> operands;
    builder_.SetMetadata(i.metadata_id());
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      operands.push_back(computes ? Wide(i.operand(k)) : Own(i.operand(k)));
    }
    InstructionId made = builder_.MakeClone(i.id(), operands);
    if (computes && IsNarrow(i)) {
      module_.SetShape(made, Widened(builder_.shapes(), i.shape(), type_));
      made = builder_.MakeConvert(made, i.shape().element_type());
    }
    Set(i, made);
  }

  Module& module_;
  const ComputeType& type_;
  Builder builder_;
  absl::flat_hash_map<uint32_t, Value> values_;  // by instruction of the function
};

// Returns true if the computations that `i` applies to elements take operands of a narrow type.
bool AppliesNarrow(Instruction i, const ComputeType& type) {
  for (Computation function : i.called_computations()) {
    if (HasNarrow(function.root().shape(), type)) return true;
    for (int64_t k = 0; k < function.parameter_count(); ++k) {
      if (HasNarrow(function.parameter(k).shape(), type)) return true;
    }
  }
  return false;
}

bool CanWidenFunctions(Instruction i) {
  for (Computation function : i.called_computations()) {
    if (HasTrait(i.opcode(), kReducesAcrossDevices) ? !IsOneOperation(function) : !IsClonable(function)) return false;
  }
  return true;
}

void WidenFunctions(PatternRewriter& rewriter, InstructionId made, const ComputeType& type) {
  Module& module = rewriter.module();
  const bool named = HasTrait(rewriter.at(made).opcode(), kReducesAcrossDevices);
  module.ReplaceCallees(made, [&](ComputationId id) {
    const Computation function = module.computation(id);
    if (!named) return FunctionWidener(&module, &type, module.UniqueComputationName(function.name())).Clone(function);
    return rewriter.MakeReducer(function.root().opcode(), type.wide);
  });
}

}  // namespace

bool KeepsElements(Opcode opcode) {
  static constexpr OpcodeSet kKeeping = {Opcode::kConvert, Opcode::kCopy, Opcode::kSelect, Opcode::kReducePrecision,
                                         Opcode::kStochasticConvert};
  return kKeeping.Contains(opcode);
}

bool ComputeType::IsNarrow(ElementType type) const {
  return std::find(narrow.begin(), narrow.end(), type) != narrow.end();
}

bool ComputeIn(PatternRewriter& rewriter, Instruction i, const ComputeType& type) {
  const bool replaceable = rewriter.IsReplaceable(i);
  if (!IsArrayOrArrays(i.shape()) || (!replaceable && !rewriter.MayReplaceEffect(i))) return false;
  bool any = HasNarrow(i.shape(), type);
  for (Instruction operand : i.operands()) {
    if (!operand.shape().IsArray()) return false;
    any |= HasNarrow(operand.shape(), type);
  }
  if (!any) return false;
  const bool functions = AppliesNarrow(i, type);
  if (functions && !CanWidenFunctions(i)) return false;
  std::vector<InstructionId> operands;
  // By index: creating instructions reallocates the operand lists.
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const Instruction operand = i.operand(k);
    const bool narrow = HasNarrow(operand.shape(), type);
    operands.push_back(narrow ? rewriter.MakeConvert(operand.id(), type.wide) : operand.id());
    // Merges with the conversion that follows.
    if (narrow && operand.opcode() == Opcode::kConvert) rewriter.AddMetadataSource(operands.back(), operand);
  }
  const Shape shape = Widened(rewriter.shapes(), i.shape(), type);
  const InstructionId computed = rewriter.Make(i.opcode(), shape, operands, OwnAttrs(i));
  if (functions) WidenFunctions(rewriter, computed, type);
  InstructionId result = computed;
  if (i.shape().IsTuple()) {
    std::vector<InstructionId> elements;
    for (int64_t k = 0; k < shape.tuple_size(); ++k) {
      const InstructionId element = rewriter.MakeElement(computed, k);
      elements.push_back(rewriter.MakeConvert(element, i.shape().element(k).element_type()));
    }
    result = rewriter.MakeTuple(elements);
  } else if (shape != i.shape()) {
    result = rewriter.Make(Opcode::kConvert, i.shape(), {computed});
  }
  return replaceable ? rewriter.Replace(i, result) : rewriter.ReplaceEffect(i, result);
}

}  // namespace hlokit
