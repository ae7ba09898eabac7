// SPDX-License-Identifier: Apache-2.0
#include "interp/pjrt/execution/dynamic_sizes.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/core/str_cat.h"
#include "passes/core/pipeline.h"

namespace hlokit::pjrt {
namespace {

bool HasDynamicArrays(const Module& module) {
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      if (i.shape().has_dynamic_dims()) return true;
    }
  }
  return false;
}

class SizeArguments {
 public:
  explicit SizeArguments(Module* module) : module_(*module), builder_(module, module->entry().id()) {}

  absl::Status Run() {
    const int64_t given = module_.entry().parameter_count();
    for (int64_t k = 0; k < given; ++k) {
      if (absl::Status status = Receive(module_.entry().parameter(k).id()); !status.ok()) return status;
    }
    if (absl::Status status = Return(); !status.ok()) return status;
    DescribeEntry();
    return absl::OkStatus();
  }

 private:
  ShapeTable& shapes() const { return module_.context().shapes; }
  Shape StaticOf(Shape array) const { return shapes().Array(array.element_type(), array.dims(), {}, array.layout()); }
  InstructionId Number(int64_t value) {
    return builder_.MakeScalarConstant(ElementType::kS32, static_cast<double>(value));
  }
  InstructionId SetSize(InstructionId array, Shape shape, int64_t dim, InstructionId size) {
    const AttrValue dimension[] = {builder_.List(Attr::kDimensions, {dim})};
    return builder_.Make(Opcode::kSetDimensionSize, shape, {array, size}, dimension);
  }

  absl::Status Receive(InstructionId parameter);
  InstructionId WithSizes(InstructionId array, Shape shape);
  absl::Status Return();
  InstructionId WithoutSizes(InstructionId array, std::vector<InstructionId>* sizes);
  void DescribeEntry();

  Module& module_;
  Builder builder_;
};

// Returns `array`, of the bounds of `shape`, with sizes that are new parameters.
InstructionId SizeArguments::WithSizes(InstructionId array, Shape shape) {
  std::vector<uint8_t> dynamic(static_cast<size_t>(shape.rank()), 0);
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!shape.is_dynamic(d)) continue;
    const int64_t number = module_.entry().parameter_count();
    builder_.WithName(StrCat("size.", number));
    const InstructionId size =
        builder_.Make(Opcode::kParameter, shapes().Scalar(ElementType::kS32), {}, {}, static_cast<uint32_t>(number));
    dynamic[static_cast<size_t>(d)] = 1;
    array = SetSize(array, shapes().Array(shape.element_type(), shape.dims(), dynamic, shape.layout()), d, size);
  }
  return array;
}

absl::Status SizeArguments::Receive(InstructionId parameter) {
  const Shape shape = module_.instruction(parameter).shape();
  if (!shape.has_dynamic_dims()) return absl::OkStatus();
  std::vector<std::pair<InstructionId, int64_t>> users;
  for (const auto& use : module_.instruction(parameter).uses()) users.emplace_back(use.user.id(), use.operand_index);
  const bool is_root = module_.instruction(parameter).is_root();
  builder_.SetInsertionPointAfter(parameter);
  InstructionId value;
  if (shape.IsTuple()) {
    std::vector<Shape> elements;
    for (int64_t k = 0; k < shape.tuple_size(); ++k) {
      if (shape.element(k).IsTuple() && shape.element(k).has_dynamic_dims()) {
        return absl::UnimplementedError("a parameter that is a tuple with a tuple of dynamic arrays");
      }
      elements.push_back(shape.element(k).has_dynamic_dims() ? StaticOf(shape.element(k)) : shape.element(k));
    }
    module_.SetShape(parameter, shapes().Tuple(elements));
    std::vector<InstructionId> sized;
    for (int64_t k = 0; k < shape.tuple_size(); ++k) {
      const InstructionId element = builder_.MakeElement(parameter, k);
      sized.push_back(shape.element(k).has_dynamic_dims() ? WithSizes(element, shape.element(k)) : element);
    }
    value = builder_.MakeTuple(sized);
  } else {
    module_.SetShape(parameter, StaticOf(shape));
    value = WithSizes(parameter, shape);
  }
  for (const auto& [user, operand] : users) module_.ReplaceOperand(user, operand, value);
  if (is_root) builder_.SetRoot(value);
  return absl::OkStatus();
}

// Appends the sizes of the dynamic dimensions, and returns the array of the bounds.
InstructionId SizeArguments::WithoutSizes(InstructionId array, std::vector<InstructionId>* sizes) {
  const Shape shape = builder_.shape_of(array);
  std::vector<uint8_t> dynamic;
  for (int64_t d = 0; d < shape.rank(); ++d) dynamic.push_back(shape.is_dynamic(d) ? 1 : 0);
  InstructionId value = array;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!shape.is_dynamic(d)) continue;
    const AttrValue dimension[] = {builder_.List(Attr::kDimensions, {d})};
    sizes->push_back(builder_.Make(Opcode::kGetDimensionSize, shapes().Scalar(ElementType::kS32), {array}, dimension));
    dynamic[static_cast<size_t>(d)] = 0;
    const Shape without = shapes().Array(shape.element_type(), shape.dims(), dynamic, shape.layout());
    value = SetSize(value, without, d, Number(shape.dim(d)));
  }
  return value;
}

absl::Status SizeArguments::Return() {
  const InstructionId root = module_.entry().root().id();
  const Shape shape = builder_.shape_of(root);
  if (!shape.has_dynamic_dims()) return absl::OkStatus();
  builder_.SetInsertionPoint(InstructionId());
  std::vector<InstructionId> elements, sizes;
  if (shape.IsTuple()) {
    for (int64_t k = 0; k < shape.tuple_size(); ++k) {
      if (shape.element(k).IsTuple() && shape.element(k).has_dynamic_dims()) {
        return absl::UnimplementedError("a result that is a tuple with a tuple of dynamic arrays");
      }
      const Instruction tuple = module_.instruction(root);
      const InstructionId element =
          tuple.opcode() == Opcode::kTuple ? tuple.operand(k).id() : builder_.MakeElement(root, k);
      elements.push_back(shape.element(k).has_dynamic_dims() ? WithoutSizes(element, &sizes) : element);
    }
  } else {
    elements.push_back(WithoutSizes(root, &sizes));
    for (InputOutputAlias& alias : module_.header().input_output_alias) {
      alias.output_index = module_.context().lists.Intern({0});
    }
  }
  elements.insert(elements.end(), sizes.begin(), sizes.end());
  builder_.SetRoot(builder_.MakeTuple(elements));
  const Instruction before = module_.instruction(root);
  if (before.opcode() == Opcode::kTuple && !before.has_users()) module_.Erase(root);
  return absl::OkStatus();
}

void SizeArguments::DescribeEntry() {
  EntryLayout layout;
  const Computation entry = module_.entry();
  for (int64_t k = 0; k < entry.parameter_count(); ++k) layout.parameters.push_back(entry.parameter(k).shape());
  layout.result = entry.root().shape();
  module_.header().entry_layout = std::move(layout);
}

}  // namespace

absl::StatusOr<bool> MakeSizesExplicit(Module* module) {
  if (!HasDynamicArrays(*module)) return false;
  if (absl::Status status = SizeArguments(module).Run(); !status.ok()) return status;
  absl::StatusOr<Pipeline> padder = Pipeline::Parse("dynamic-padder");
  if (!padder.ok()) return padder.status();
  if (absl::Status status = padder->Run(*module).status(); !status.ok()) return status;
  return true;
}

}  // namespace hlokit::pjrt
