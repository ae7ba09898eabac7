// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/loops/loop_builder.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "interp/processor/instruction_set.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp::compiled {
namespace {

struct OpRow {
  Opcode opcode;
  LoopOp op;
  // Types of operand 0 for which the operation is part of the loop; others are calls.
  bool floats;  // f32 and narrower
  bool wide;    // f64
  bool integers;
  bool pred;
};

constexpr OpRow kOps[] = {
    {Opcode::kAdd, LoopOp::kAdd, true, true, true, false},
    {Opcode::kSubtract, LoopOp::kSubtract, true, true, true, false},
    {Opcode::kMultiply, LoopOp::kMultiply, true, true, true, false},
    {Opcode::kDivide, LoopOp::kDivide, true, true, false, false},
    {Opcode::kMaximum, LoopOp::kMaximum, true, true, true, false},
    {Opcode::kMinimum, LoopOp::kMinimum, true, true, true, false},
    {Opcode::kAnd, LoopOp::kAnd, false, false, true, true},
    {Opcode::kOr, LoopOp::kOr, false, false, true, true},
    {Opcode::kXor, LoopOp::kXor, false, false, true, true},
    {Opcode::kNot, LoopOp::kNot, false, false, true, true},
    {Opcode::kNegate, LoopOp::kNegate, true, true, true, false},
    {Opcode::kAbs, LoopOp::kAbs, true, true, false, false},
    {Opcode::kSign, LoopOp::kSign, true, true, false, false},
    {Opcode::kSqrt, LoopOp::kSqrt, true, true, false, false},
    {Opcode::kRsqrt, LoopOp::kRsqrt, true, true, false, false},
    {Opcode::kFloor, LoopOp::kFloor, true, true, false, false},
    {Opcode::kCeil, LoopOp::kCeil, true, true, false, false},
    {Opcode::kRoundNearestEven, LoopOp::kRoundNearestEven, true, true, false, false},
    {Opcode::kIsFinite, LoopOp::kIsFinite, true, true, false, false},
    {Opcode::kSelect, LoopOp::kSelect, false, false, false, true},
    {Opcode::kClamp, LoopOp::kClamp, true, true, true, false},
    {Opcode::kCompare, LoopOp::kCompare, true, true, true, true},
    {Opcode::kConvert, LoopOp::kConvert, true, true, true, true},
    {Opcode::kBitcastConvert, LoopOp::kBitcastConvert, true, true, true, false},
    {Opcode::kShiftLeft, LoopOp::kShiftLeft, false, false, true, false},
    {Opcode::kShiftRightArithmetic, LoopOp::kShiftRightArithmetic, false, false, true, false},
    {Opcode::kShiftRightLogical, LoopOp::kShiftRightLogical, false, false, true, false},
    {Opcode::kExp, LoopOp::kExp, true, false, false, false},
    {Opcode::kLog, LoopOp::kLog, true, false, false, false},
    {Opcode::kTanh, LoopOp::kTanh, true, false, false, false},
    {Opcode::kLogistic, LoopOp::kLogistic, true, false, false, false},
    {Opcode::kErf, LoopOp::kErf, true, false, false, false},
    {Opcode::kExpm1, LoopOp::kExpm1, true, false, false, false},
    {Opcode::kLog1p, LoopOp::kLog1p, true, false, false, false},
    {Opcode::kCopy, LoopOp::kCopy, true, true, true, true},
    {Opcode::kReshape, LoopOp::kCopy, true, true, true, true},
};

bool HasType(const OpRow& row, ElementType type) {
  if (type == ElementType::kPred) return row.pred;
  if (IsInteger(type)) return row.integers;
  return type == ElementType::kF64 ? row.wide : row.floats;
}

// Returns true if the generated conversion is defined, see ValueEmitter::ConvertValue.
bool ConvertsInLoop(ElementType from, ElementType to) {
  if (!IsFloat(to) || BitsOf(to) >= 32) return true;
  if (IsFloat(from)) return from != ElementType::kF64;
  return BitsOf(from) <= 16;
}

// Returns the operation that is part of the loop, or null.
const OpRow* RowOf(Instruction i) {
  const ElementType type = i.operand(0).shape().element_type();
  const ElementType result = i.shape().element_type();
  for (const OpRow& row : kOps) {
    if (row.opcode != i.opcode() || !HasType(row, type)) continue;
    if (row.op == LoopOp::kConvert && !ConvertsInLoop(type, result)) return nullptr;
    if (row.op == LoopOp::kBitcastConvert &&
        (BitsOf(type) != BitsOf(result) || BitsOf(type) < 32 || IsComplex(result))) {
      return nullptr;
    }
    if (row.op == LoopOp::kCompare && IsFloat(type) &&
        i.enum_attr(Attr::kCompareType, ComparisonType::kFloat) == ComparisonType::kTotalOrder) {
      return nullptr;
    }
    return &row;
  }
  return nullptr;
}

std::optional<ElementOp> FunctionOf(Instruction i) {
  absl::InlinedVector<ElementType, ElementOp::kMaxOperands> types;
  for (Instruction operand : i.operands()) types.push_back(operand.shape().element_type());
  std::string ignored;
  return ElementOp::Create(i.opcode(), i, types, i.shape().element_type(), &ignored);
}

}  // namespace

bool IsLoopType(ElementType type) {
  if (type == ElementType::kPred || type == ElementType::kBF16 || IsFloat8(type)) return true;
  // Without an instruction, conversions of f16 are calls of a library.
  if (type == ElementType::kF16) return HostInstructionSet() != InstructionSet::kSse4;
  return (IsInteger(type) && BitsOf(type) >= 8) || type == ElementType::kF32 || type == ElementType::kF64;
}

bool IsLoopInstruction(Instruction i) {
  const Shape shape = i.shape();
  const bool moves = HasTrait(i.opcode(), kReinterprets) && i.opcode() != Opcode::kBitcast;
  if ((!HasTrait(i.opcode(), kElementwise) && !moves) || !shape.IsArray() || !IsLoopType(shape.element_type())) {
    return false;
  }
  if (i.operand_count() < 1 || i.operand_count() > ElementOp::kMaxOperands) return false;
  for (Instruction operand : i.operands()) {
    const Shape from = operand.shape();
    if (!from.IsArray() || !IsLoopType(from.element_type())) return false;
    const bool scalar = (i.opcode() == Opcode::kSelect || i.opcode() == Opcode::kClamp) && from.rank() == 0;
    if (from.dims() != shape.dims() && !scalar && !moves) return false;
  }
  const ElementType first = i.operand(0).shape().element_type();
  if (moves) return first == shape.element_type() && i.operand(0).shape().element_count() == shape.element_count();
  // The types must be those for which the operation is defined; others are converted by the exact engine.
  return FunctionOf(i).has_value();
}

bool IsApproximate(Opcode opcode) {
  return std::any_of(std::begin(kOps), std::end(kOps), [&](const OpRow& row) {
    return row.opcode == opcode && AccuracyOf(row.op) == LoopAccuracy::kApproximate;
  });
}

std::optional<LoopOp> ReduceCombiner(Instruction i, std::vector<int64_t>* reduced) {
  if (i.opcode() != Opcode::kReduce || i.operand_count() != 2 || !i.shape().IsArray()) return std::nullopt;
  const Shape from = i.operand(0).shape();
  const ElementType type = i.shape().element_type();
  if (!from.IsArray() || from.element_type() != type || !i.operand(1).shape().IsArray() ||
      i.operand(1).shape().rank() != 0 || i.operand(1).shape().element_type() != type || !IsLoopType(type) ||
      type == ElementType::kF64 || IsFloat8(type)) {
    return std::nullopt;
  }
  const absl::Span<const int64_t> dims = i.list_attr(Attr::kDimensions);
  reduced->assign(dims.begin(), dims.end());
  std::sort(reduced->begin(), reduced->end());
  std::vector<int64_t> kept;
  size_t at = 0;
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (at < reduced->size() && (*reduced)[at] == d) {
      ++at;
    } else {
      kept.push_back(from.dim(d));
    }
  }
  // Dimensions out of range, or twice, are left.
  if (at != reduced->size() || at == 0 || i.shape().dims() != absl::MakeConstSpan(kept)) return std::nullopt;
  const Computation combiner = i.computation_attr(Attr::kToApply);
  if (!combiner.valid() || combiner.parameter_count() != 2) return std::nullopt;
  const Instruction root = combiner.root();
  if (root.operand_count() != 2 || root.shape() != combiner.parameter(0).shape() || root.shape().rank() != 0 ||
      root.shape().element_type() != type) {
    return std::nullopt;
  }
  const Instruction first = combiner.parameter(0), second = combiner.parameter(1);
  if (!((root.operand(0) == first && root.operand(1) == second) ||
        (root.operand(0) == second && root.operand(1) == first)) ||
      second.shape() != first.shape()) {
    return std::nullopt;
  }
  for (const OpRow& row : kOps) {
    if (row.opcode != root.opcode() || !HasType(row, type) || NeutralOf(row.op) == NeutralElement::kNone) continue;
    // Of pred, the exact engine's other operations are conjunctions and disjunctions under other names.
    if (type == ElementType::kPred && row.op != LoopOp::kAnd && row.op != LoopOp::kOr) return std::nullopt;
    return row.op;
  }
  return std::nullopt;
}

std::optional<LoopOp> RowCombiner(Instruction i) {
  std::vector<int64_t> reduced;
  const std::optional<LoopOp> combiner = ReduceCombiner(i, &reduced);
  const int64_t rank = i.shape().IsArray() ? i.shape().rank() : 0;
  if (!combiner || rank < 1 || reduced.front() != rank) return std::nullopt;
  return combiner;
}

const NormForm* NormFormOf(Opcode opcode) {
  static constexpr NormForm kForms[] = {
      {Opcode::kBatchNormTraining, 3, -1, true},
      {Opcode::kBatchNormInference, 5, -1, false},
      {Opcode::kBatchNormGrad, 5, 4, true},
  };
  const auto* const form = absl::c_find_if(kForms, [&](const NormForm& row) { return row.opcode == opcode; });
  return form == std::end(kForms) ? nullptr : form;
}

bool IsLoopNorm(Instruction i) {
  const NormForm* const form = NormFormOf(i.opcode());
  if (form == nullptr || i.operand_count() != form->operands) return false;
  const Shape whole = i.operand(0).shape();
  const int64_t feature = i.int_attr(Attr::kFeatureIndex);
  if (!whole.IsArray() || feature < 0 || feature >= whole.rank()) return false;
  const auto has_type = [](ElementType type) {
    const bool narrow = type == ElementType::kBF16 || type == ElementType::kF16;
    return type == ElementType::kF32 || (narrow && IsLoopType(type));
  };
  const auto fits = [&](Shape shape, bool is_whole) {
    if (!shape.IsArray() || !has_type(shape.element_type())) return false;
    if (is_whole) return shape.dims() == whole.dims() && shape.element_type() == whole.element_type();
    return shape.rank() == 1 && shape.dim(0) == whole.dim(feature);
  };
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    if (!fits(i.operand(k).shape(), k == 0 || k == form->gradient)) return false;
  }
  if (!form->has_sums) return fits(i.shape(), true);
  if (!i.shape().IsTuple() || i.shape().tuple_size() != 3) return false;
  return fits(i.shape().elements()[0], true) && fits(i.shape().elements()[1], false) &&
         fits(i.shape().elements()[2], false);
}

bool IsNormResult(Instruction i) {
  return i.opcode() == Opcode::kGetTupleElement && i.int_attr(Attr::kIndex) == 0 && IsLoopNorm(i.operand(0));
}

bool IsRowBroadcast(Instruction i) {
  if (i.opcode() != Opcode::kBroadcast || !i.shape().IsArray() || !i.operand(0).shape().IsArray()) return false;
  const Shape from = i.operand(0).shape();
  const absl::Span<const int64_t> dims = i.list_attr(Attr::kDimensions);
  if (!IsLoopType(from.element_type()) || from.element_type() != i.shape().element_type() || from.rank() < 1 ||
      from.rank() >= i.shape().rank() || static_cast<int64_t>(dims.size()) != from.rank()) {
    return false;
  }
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (dims[static_cast<size_t>(d)] != d || from.dim(d) != i.shape().dim(d)) return false;
  }
  return true;
}

uint16_t LoopBuilder::Input(Instruction value, Repeats repeats) {
  const auto [it, is_new] = input_node_of_.try_emplace(value.id().value, static_cast<uint16_t>(program_.nodes.size()));
  if (!is_new) return it->second;
  return AddInput(value.shape().element_type(), repeats);
}

uint16_t LoopBuilder::AddInput(ElementType type, Repeats repeats) {
  LoopNode node;
  node.op = LoopOp::kInput;
  node.type = type;
  node.row_value = repeats.row_value;
  node.column_value = repeats.column_value;
  node.param = static_cast<uint32_t>(program_.inputs.size());
  program_.nodes.push_back(node);
  program_.inputs.push_back({type, repeats.row_value, repeats.column_value});
  return static_cast<uint16_t>(program_.nodes.size() - 1);
}

uint16_t LoopBuilder::AddNode(LoopOp op, ElementType type, std::initializer_list<uint16_t> operands) {
  LoopNode node;
  node.op = op;
  node.type = type;
  node.row_value = node.column_value = true;
  for (uint16_t operand : operands) {
    node.operands[node.operand_count++] = operand;
    node.row_value = node.row_value && program_.nodes[operand].row_value;
    node.column_value = node.column_value && program_.nodes[operand].column_value;
  }
  program_.nodes.push_back(node);
  return static_cast<uint16_t>(program_.nodes.size() - 1);
}

uint16_t LoopBuilder::AddReduction(LoopOp combiner, uint16_t element, bool row_value) {
  const ElementType type = AccumulatorType(combiner, program_.nodes[element].type);
  if (type != program_.nodes[element].type) element = AddNode(LoopOp::kConvert, type, {element});
  const uint16_t number = AddNode(LoopOp::kReduce, type, {element});
  program_.nodes[number].param = static_cast<uint32_t>(combiner);
  program_.nodes[number].row_value = row_value;
  program_.nodes[number].column_value = false;
  return number;
}

uint16_t LoopBuilder::Add(Instruction member) {
  LoopNode node;
  node.type = member.shape().element_type();
  node.operand_count = static_cast<uint8_t>(member.operand_count());
  node.row_value = node.column_value = true;
  for (int k = 0; k < node.operand_count; ++k) {
    const Instruction operand = member.operand(k);
    node.operands[k] = ValueOf(operand);
    node.row_value = node.row_value && program_.nodes[node.operands[k]].row_value;
    node.column_value = node.column_value && program_.nodes[node.operands[k]].column_value;
  }
  if (member.opcode() == Opcode::kBroadcast || member.opcode() == Opcode::kGetTupleElement)
    return node_of_[member.id().value] = node.operands[0];
  if (member.opcode() == Opcode::kReduce) {
    node.op = LoopOp::kReduce;
    node.param = static_cast<uint32_t>(*RowCombiner(member));
    node.row_value = true;
    node.column_value = false;
  } else if (const OpRow* row = RowOf(member)) {
    node.op = row->op;
    if (row->op == LoopOp::kCompare) {
      node.param = static_cast<uint32_t>(member.enum_attr(Attr::kDirection, ComparisonDirection::kEq));
    }
  } else {
    node.op = LoopOp::kCall;
    node.param = program_.calls++;
    functions_.push_back(*FunctionOf(member));
  }
  const uint16_t number = static_cast<uint16_t>(program_.nodes.size());
  program_.nodes.push_back(node);
  node_of_[member.id().value] = number;
  return number;
}

void LoopBuilder::AddOutput(Instruction member, bool by_element) {
  uint16_t output = NodeOf(member);
  if (by_element && program_.nodes[output].row_value) {
    LoopNode copy;
    copy.op = LoopOp::kCopy;
    copy.type = program_.nodes[output].type;
    copy.operand_count = 1;
    copy.operands[0] = output;
    output = static_cast<uint16_t>(program_.nodes.size());
    program_.nodes.push_back(copy);
  }
  program_.outputs.push_back(output);
}

}  // namespace hlokit::interp::compiled
