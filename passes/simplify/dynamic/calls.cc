// SPDX-License-Identifier: Apache-2.0
// Passing sizes into and out of computations.
#include <utility>

#include "ir/core/str_cat.h"
#include "passes/annotations/annotations.h"
#include "passes/simplify/dynamic/padder.h"

namespace hlokit {
namespace {

// The binding of operands and result of a call, loop or conditional to a computation.
struct CalleeBinding {
  Computation callee;
  int64_t first;  // operand bound to parameter 0
};

std::vector<CalleeBinding> CalleeBindings(Instruction call) {
  if (call.opcode() == Opcode::kWhile) {
    return {{call.computation_attr(Attr::kCondition), 0}, {call.computation_attr(Attr::kBody), 0}};
  }
  std::vector<CalleeBinding> bindings;
  int64_t branch = 1;
  call.ForEachCallee([&](Computation callee) {
    bindings.push_back({callee, call.opcode() == Opcode::kConditional ? branch++ : 0});
  });
  return bindings;
}

}  // namespace

absl::Status Padder::VisitCall(Instruction i) {
  const Instruction before = original_.instruction(i.id());
  if (i.has(Attr::kSharding)) return CannotPad(i, "it has a sharding");
  const std::vector<CalleeBinding> bindings = CalleeBindings(before);
  std::vector<Shape> passed(static_cast<size_t>(i.operand_count()));  // by operand: the shape of the parameter
  for (const CalleeBinding& binding : bindings) {
    for (int64_t k = 0; k < binding.callee.parameter_count(); ++k) {
      const Shape parameter = binding.callee.parameter(k).shape();
      // All iterations of a loop have one shape.
      if (before.opcode() == Opcode::kWhile && !Compatible(parameter, before.shape())) {
        return CannotPad(i, StrCat("%", binding.callee.name(), " has other dynamic dimensions"));
      }
      passed[static_cast<size_t>(binding.first + k)] = parameter;
    }
  }
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const Shape shape = passed[static_cast<size_t>(k)];
    if (!shape.valid()) continue;  // what a conditional branches on
    const absl::StatusOr<InstructionId> packed = Packed(i.operand(k).id(), shape);
    if (!packed.ok()) return packed.status();
    const Instruction operand = i.operand(k);
    if (*packed == operand.id()) continue;
    module_.ReplaceOperand(i.id(), k, *packed);
    EraseTuple(operand, *packed);
  }
  ++passed_;
  return before.shape().has_dynamic_dims() ? Unpack(i) : absl::OkStatus();
}

absl::StatusOr<InstructionId> Padder::Packed(InstructionId value, Shape shape) {
  const Sizes sizes = SizesOf(value);
  if (sizes.empty() && !shape.has_dynamic_dims()) return value;
  std::vector<InstructionId> elements;
  if (!shape.IsTuple()) {
    elements.push_back(value);
  } else {
    for (int64_t k = 0; k < shape.tuple_size(); ++k) {
      elements.push_back(at(value).opcode() == Opcode::kTuple ? at(value).operand(k).id()
                                                              : builder_.MakeElement(value, k));
    }
  }
  size_t next = 0;
  for (Shape leaf : Leaves(shape)) {
    for (int64_t d = 0; d < leaf.rank(); ++d, ++next) {
      const InstructionId size = sizes.empty() ? InstructionId() : sizes[next];
      if (size.valid() && !leaf.is_dynamic(d)) {
        return CannotPad(at(value), StrCat("dimension ", d, " is dynamic, but not where it is passed on"));
      }
      if (leaf.is_dynamic(d)) elements.push_back(SizeOrBound(size, leaf.dim(d)));
    }
  }
  return builder_.MakeTuple(elements);
}

absl::Status Padder::Unpack(Instruction i) {
  const Shape shape = i.shape();
  if (i.has(Attr::kSharding)) return CannotPad(i, "it has a sharding");
  std::vector<std::pair<InstructionId, int64_t>> whole;  // users of the whole tuple
  for (const auto& use : i.uses()) {
    if (!shape.IsTuple() || use.user.opcode() != Opcode::kGetTupleElement) {
      whole.emplace_back(use.user.id(), use.operand_index);
    }
  }
  const bool is_root = i.is_root();
  module_.SetShape(i.id(), static_shapes_.WithSizes(shape));
  module_.RemoveAttr(i.id(), Attr::kOrigin);
  builder_.SetInsertionPointAfter(i.id());
  int64_t index = shape.IsTuple() ? shape.tuple_size() : 1;
  Sizes sizes;
  for (Shape leaf : Leaves(shape)) {
    for (int64_t d = 0; d < leaf.rank(); ++d) {
      sizes.push_back(leaf.is_dynamic(d) ? builder_.MakeElement(i.id(), index++) : InstructionId());
    }
  }
  if (shape.IsTuple()) SetSizes(i.id(), sizes);
  if (whole.empty() && !is_root) return absl::OkStatus();
  InstructionId value;
  if (shape.IsTuple()) {
    std::vector<InstructionId> elements;
    for (int64_t k = 0; k < shape.tuple_size(); ++k) elements.push_back(builder_.MakeElement(i.id(), k));
    value = builder_.MakeTuple(elements);
  } else {
    value = builder_.MakeElement(i.id(), 0);
  }
  SetSizes(value, std::move(sizes));
  for (const auto& [user, operand] : whole) module_.ReplaceOperand(user, operand, value);
  if (is_root) module_.SetRoot(computation_, value);
  return absl::OkStatus();
}

absl::Status Padder::ReceiveSizes(Instruction source) {
  const Shape shape = source.shape();
  std::vector<std::pair<InstructionId, int64_t>> users;
  for (const auto& use : source.uses()) users.emplace_back(use.user.id(), use.operand_index);
  if (users.empty()) return absl::OkStatus();
  builder_.SetInsertionPointAfter(source.id());
  Sizes sizes(static_cast<size_t>(shape.rank()));
  std::vector<uint8_t> dynamic;
  for (int64_t d = 0; d < shape.rank(); ++d) dynamic.push_back(shape.is_dynamic(d) ? 1 : 0);
  InstructionId value = source.id();
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!shape.is_dynamic(d)) continue;
    const AttrValue dimension[] = {builder_.List(Attr::kDimensions, {d})};
    sizes[static_cast<size_t>(d)] =
        builder_.Make(Opcode::kGetDimensionSize, shapes().Scalar(ElementType::kS32), {source.id()}, dimension);
    dynamic[static_cast<size_t>(d)] = 0;
    const Shape without = shapes().Array(shape.element_type(), shape.dims(), dynamic, shape.layout());
    value = builder_.Make(Opcode::kSetDimensionSize, without, {value, Number(shape.dim(d))}, dimension);
  }
  SetSizes(value, std::move(sizes));
  for (const auto& [user, operand] : users) module_.ReplaceOperand(user, operand, value);
  return absl::OkStatus();
}

absl::StatusOr<InstructionId> Padder::Restored(InstructionId result, Shape shape) {
  if (!shape.IsArray()) return CannotPad(at(result), "a tuple in a tuple is dynamic");
  const Sizes sizes = SizesOf(result);
  std::vector<uint8_t> dynamic(static_cast<size_t>(shape.rank()), 0);
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!shape.is_dynamic(d)) continue;
    if (sizes.empty() || !sizes[static_cast<size_t>(d)].valid()) {
      return CannotPad(at(result), StrCat("the size of dimension ", d, " is not known"));
    }
    dynamic[static_cast<size_t>(d)] = 1;
    builder_.SetMetadata(at(result).metadata_id());
    const AttrValue dimension[] = {builder_.List(Attr::kDimensions, {d})};
    const Shape with = shapes().Array(shape.element_type(), shape.dims(), dynamic, shape.layout());
    result = builder_.Make(Opcode::kSetDimensionSize, with, {result, sizes[static_cast<size_t>(d)]}, dimension);
  }
  return result;
}

absl::Status Padder::RestoreResults() {
  const Instruction root = module_.computation(computation_).root();
  if (root.opcode() != Opcode::kTuple) {
    if (root.shape().has_dynamic_dims()) return absl::OkStatus();  // an unused parameter
    const absl::StatusOr<InstructionId> result = Restored(root.id(), root_shape_);
    if (result.ok()) module_.SetRoot(computation_, *result);
    return result.status();
  }
  SetInsertionPoint(root.id(), root.metadata_id());
  for (int64_t k = 0; k < root.operand_count(); ++k) {
    if (!root_shape_.element(k).has_dynamic_dims() || root.operand(k).shape() == root_shape_.element(k)) continue;
    const absl::StatusOr<InstructionId> result = Restored(root.operand(k).id(), root_shape_.element(k));
    if (!result.ok()) return result.status();
    module_.ReplaceOperand(root.id(), k, *result);
  }
  return absl::OkStatus();
}

absl::Status Padder::PackResult() {
  const Instruction root = module_.computation(computation_).root();
  const absl::StatusOr<InstructionId> packed = Packed(root.id(), root_shape_);
  if (!packed.ok()) return packed.status();
  module_.SetRoot(computation_, *packed);
  EraseTuple(root, *packed);
  return absl::OkStatus();
}

void Padder::EraseTuple(Instruction tuple, InstructionId by) {
  if (tuple.opcode() != Opcode::kTuple || tuple.has_users() || tuple.is_root()) return;
  Replace(module_, tuple.id(), by);
}

}  // namespace hlokit
