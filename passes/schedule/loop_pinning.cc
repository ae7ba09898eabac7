// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/loop_pinning.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "ir/builder/builder.h"
#include "passes/analysis/loop.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/schedule/vector_memory.h"
#include "passes/target/tiling.h"

namespace hlokit {
namespace {

class Pinner {
 public:
  Pinner(Module* module, Instruction loop, absl::Span<const LoopVariantElement> elements)
      : module_(*module), loop_(loop), body_(loop.computation_attr(Attr::kBody)), pinned_(elements) {}

  absl::Status Run();

 private:
  absl::Status CopyBack(InstructionId loop, Shape in_hbm);

  Module& module_;
  const Instruction loop_;
  const Computation body_;
  const absl::Span<const LoopVariantElement> pinned_;
};

absl::Status Pinner::Run() {
  const InstructionId loop_id = loop_.id();
  const Computation condition = loop_.computation_attr(Attr::kCondition);
  ShapeTable& shapes = module_.context().shapes;
  const auto pin_array = [&](InstructionId id) {
    module_.SetShape(id, InVmem(module_.context().shapes, module_.instruction(id).shape()));
  };
  const auto pin_names = [&](Instruction value) {
    for (InstructionId name : NamesOf(value)) pin_array(name);
  };
  const auto pin_elements = [&](InstructionId tuple) {
    const absl::Span<const Shape> old = module_.instruction(tuple).shape().elements();
    std::vector<Shape> elements(old.begin(), old.end());
    for (const LoopVariantElement& element : pinned_) {
      Shape& shape = elements[static_cast<size_t>(element.index)];
      shape = InVmem(module_.context().shapes, shape);
    }
    module_.SetShape(tuple, shapes.Tuple(elements));
  };
  for (const LoopVariantElement& element : pinned_) {
    pin_names(element.value);
    std::vector<Instruction> elements;
    for (const auto use : body_.parameter(0).uses()) {
      if (IsStateElement(use.user, body_, element.index)) elements.push_back(use.user);
    }
    for (Instruction e : elements) pin_names(e);
  }
  pin_elements(body_.parameter(0).id());
  pin_elements(body_.root().id());
  if (condition != body_) pin_elements(condition.parameter(0).id());

  // Before the loop: copies of the elements, in the init tuple if the loop is its only user, else in a new tuple.
  InstructionId init = loop_.operand(0).id();
  const bool is_own = !module_.instruction(init).is_root() && HasOneUser(module_.instruction(init));
  std::vector<InstructionId> operands;
  for (Instruction operand : module_.instruction(init).operands()) operands.push_back(operand.id());
  if (is_own) module_.MoveBefore(init, loop_id);
  const InstructionId before = is_own ? init : loop_id;
  for (const LoopVariantElement& element : pinned_) {
    InstructionId& operand = operands[static_cast<size_t>(element.index)];
    if (tpu::MemorySpaceOf(module_.instruction(operand).shape()) == tpu::kVectorMemorySpace) continue;
    const absl::StatusOr<InstructionId> copy =
        AddAsyncCopy(module_, operand, InVmem(shapes, module_.instruction(operand).shape()), before, before);
    if (!copy.ok()) return copy.status();
    operand = *copy;
  }
  if (is_own) {
    module_.SetOperands(init, operands);
  } else {
    Builder builder(&module_, loop_id);
    const MetadataScope scope(&builder, module_.record(init).metadata);
    const Builder::Result tuple = builder.Add(Opcode::kTuple, operands, {});
    if (!tuple.ok()) return tuple.status();
    module_.ReplaceOperand(loop_id, 0, *tuple);
    init = *tuple;
  }
  pin_elements(init);
  const Shape in_hbm = module_.instruction(loop_id).shape();
  pin_elements(loop_id);
  return CopyBack(loop_id, in_hbm);
}

// Copies the pinned elements back to HBM after the loop: get-tuple-elements read the copies, users of the whole tuple a
// new tuple.
absl::Status Pinner::CopyBack(InstructionId loop, Shape in_hbm) {
  const ComputationId parent = module_.record(loop).parent;
  const bool was_root = module_.computation(parent).root().id() == loop;
  std::vector<std::pair<InstructionId, int64_t>> whole;
  std::vector<InstructionId> taken;
  for (const auto use : module_.instruction(loop).uses()) {
    if (use.user.opcode() == Opcode::kGetTupleElement) {
      taken.push_back(use.user.id());
    } else {
      whole.push_back({use.user.id(), use.operand_index});
    }
  }
  Builder builder(&module_, parent);
  const MetadataScope scope(&builder, module_.record(loop).metadata);
  const auto is_pinned = [&](int64_t index) {
    return std::any_of(pinned_.begin(), pinned_.end(), [&](const LoopVariantElement& e) { return e.index == index; });
  };
  // Returns the copy in HBM of `element`, a get-tuple-element of the loop.
  const auto copy_of = [&](InstructionId element) -> absl::StatusOr<InstructionId> {
    const Shape result = module_.instruction(element).shape();
    module_.SetShape(element, InVmem(module_.context().shapes, result));
    const InstructionId after = module_.record(element).next;
    return AddAsyncCopy(module_, element, result, after, after);
  };
  for (InstructionId element : taken) {
    if (!is_pinned(module_.instruction(element).int_attr(Attr::kIndex))) continue;
    std::vector<std::pair<InstructionId, int64_t>> users;
    for (const auto use : module_.instruction(element).uses()) users.push_back({use.user.id(), use.operand_index});
    const bool element_is_root = module_.computation(parent).root().id() == element;
    if (users.empty() && !element_is_root) {
      module_.SetShape(element, InVmem(module_.context().shapes, module_.instruction(element).shape()));
      continue;
    }
    module_.MoveBefore(element, module_.record(loop).next);
    const absl::StatusOr<InstructionId> copy = copy_of(element);
    if (!copy.ok()) return copy.status();
    for (const auto& [user, index] : users) module_.ReplaceOperand(user, index, *copy);
    if (element_is_root) module_.SetRoot(parent, *copy);
  }
  if (whole.empty() && !was_root) return absl::OkStatus();
  InstructionId last = loop;
  std::vector<InstructionId> elements;
  for (int64_t k = 0; k < in_hbm.tuple_size(); ++k) {
    builder.SetInsertionPointAfter(last);
    const AttrValue index[] = {builder.Int(Attr::kIndex, k)};
    const Builder::Result element = builder.Add(Opcode::kGetTupleElement, {loop}, index, in_hbm.element(k));
    if (!element.ok()) return element.status();
    last = *element;
    elements.push_back(*element);
    if (!is_pinned(k)) continue;
    const absl::StatusOr<InstructionId> copy = copy_of(*element);
    if (!copy.ok()) return copy.status();
    last = *copy;
    elements.back() = *copy;
  }
  builder.SetInsertionPointAfter(last);
  const Builder::Result tuple = builder.Add(Opcode::kTuple, elements, {});
  if (!tuple.ok()) return tuple.status();
  for (const auto& [user, index] : whole) module_.ReplaceOperand(user, index, *tuple);
  if (was_root) module_.SetRoot(parent, *tuple);
  return absl::OkStatus();
}

}  // namespace

bool CanPin(const LoopVariantElement& element, Computation body) {
  const auto is_pinned = [&](Instruction value) {
    if (!value.shape().IsArray() || value.shape().IsScalar() || tpu::MemorySpaceOf(value.shape()) != 0) return false;
    const std::vector<InstructionId> names = NamesOf(value);
    for (InstructionId name : names) {
      for (const auto use : body.module().instruction(name).uses()) {
        if (use.user == body.root() || absl::c_linear_search(names, use.user.id())) continue;
        if (!CanReadFromVmem(use.user, use.operand_index)) return false;
      }
    }
    return !names.empty();
  };
  if (!IsKernel(element.value) || !element.value.shape().IsArray()) {
    // The previous value of another element moves within the state.
    if (!IsStateElement(element.value, body)) return false;
  }
  if (!is_pinned(element.value)) return false;
  for (const auto use : body.parameter(0).uses()) {
    if (IsStateElement(use.user, body, element.index) && !is_pinned(use.user)) return false;
  }
  return true;
}

absl::Status PinLoopState(Module& module, Instruction loop, absl::Span<const LoopVariantElement> elements) {
  return Pinner(&module, loop, elements).Run();
}

}  // namespace hlokit
