// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/loop_builder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "interp/compiled/instruction_set.h"
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
    {Opcode::kCopy, LoopOp::kCopy, true, true, true, true},
    {Opcode::kReshape, LoopOp::kCopy, true, true, true, true},
};

bool IsLoopType(ElementType type) {
  if (type == ElementType::kPred || type == ElementType::kBF16) return true;
  // Without an instruction, conversions of f16 are calls of a library.
  if (type == ElementType::kF16) return HostInstructionSet() != InstructionSet::kSse4;
  return (IsInteger(type) && BitsOf(type) >= 8) || type == ElementType::kF32 || type == ElementType::kF64;
}

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

bool IsLoopInstruction(Instruction i) {
  const Shape shape = i.shape();
  const bool moves = i.opcode() == Opcode::kReshape || i.opcode() == Opcode::kCopy;
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

std::optional<LoopOp> RowCombiner(Instruction i) {
  if (i.opcode() != Opcode::kReduce || i.operand_count() != 2 || !i.shape().IsArray()) return std::nullopt;
  const Shape from = i.operand(0).shape();
  const ElementType type = i.shape().element_type();
  if (!from.IsArray() || from.element_type() != type || !i.operand(1).shape().IsArray() ||
      i.operand(1).shape().rank() != 0 || i.operand(1).shape().element_type() != type || !IsLoopType(type) ||
      type == ElementType::kF64) {
    return std::nullopt;
  }
  // Dimensions [rank, from.rank()) in any order.
  const absl::Span<const int64_t> dims = i.list_attr(Attr::kDimensions);
  const int64_t rank = i.shape().rank();
  if (rank < 1 || static_cast<int64_t>(dims.size()) != from.rank() - rank || dims.empty() ||
      from.dims().subspan(0, static_cast<size_t>(rank)) != i.shape().dims()) {
    return std::nullopt;
  }
  std::vector<bool> seen(dims.size(), false);
  for (int64_t d : dims) {
    if (d < rank || d >= from.rank() || seen[static_cast<size_t>(d - rank)]) return std::nullopt;
    seen[static_cast<size_t>(d - rank)] = true;
  }
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
  const bool pred = type == ElementType::kPred;
  for (const OpRow& row : kOps) {
    if (row.opcode != root.opcode() || !HasType(row, type)) continue;
    if (row.op == LoopOp::kAnd || row.op == LoopOp::kOr) return row.op;
    if (pred) return std::nullopt;
    if (row.op == LoopOp::kAdd || row.op == LoopOp::kMultiply || row.op == LoopOp::kMaximum ||
        row.op == LoopOp::kMinimum) {
      return row.op;
    }
  }
  return std::nullopt;
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

uint16_t LoopBuilder::Input(Instruction value, bool row_value) {
  const auto [it, is_new] = input_node_of_.try_emplace(value.id().value, static_cast<uint16_t>(program_.nodes.size()));
  if (!is_new) return it->second;
  LoopNode node;
  node.op = LoopOp::kInput;
  node.type = value.shape().element_type();
  node.row_value = row_value;
  node.param = static_cast<uint32_t>(program_.inputs.size());
  program_.nodes.push_back(node);
  program_.inputs.push_back({node.type, row_value});
  inputs_.push_back(value);
  return it->second;
}

uint16_t LoopBuilder::Add(Instruction member) {
  LoopNode node;
  node.type = member.shape().element_type();
  node.operand_count = static_cast<uint8_t>(member.operand_count());
  node.row_value = true;
  for (int k = 0; k < node.operand_count; ++k) {
    const Instruction operand = member.operand(k);
    node.operands[k] = is_member(operand) ? NodeOf(operand) : input_node_of_.at(operand.id().value);
    node.row_value = node.row_value && program_.nodes[node.operands[k]].row_value;
  }
  if (member.opcode() == Opcode::kBroadcast) return node_of_[member.id().value] = node.operands[0];
  if (member.opcode() == Opcode::kReduce) {
    node.op = LoopOp::kReduce;
    node.param = static_cast<uint32_t>(*RowCombiner(member));
    node.row_value = true;
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
