// SPDX-License-Identifier: Apache-2.0
#include "interp/dynamic/explicit_sizes.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/core/str_cat.h"
#include "passes/fusion/fuse.h"
#include "passes/simplify/dynamic/dynamic_padder.h"
#include "passes/simplify/dynamic/static_shapes.h"

namespace hlokit::interp {
namespace {

// Dissolves the fusions if an array of one is dynamic.
void DissolveFusions(Module* module) {
  bool dynamic = false;
  for (const Computation c : module->computations()) {
    for (const Instruction i : c.instructions()) {
      if (i.opcode() != Opcode::kFusion) continue;
      for (const Instruction fused : i.computation_attr(Attr::kCalls).instructions()) {
        dynamic |= fused.shape().has_dynamic_dims();
      }
    }
  }
  if (!dynamic) return;
  module->header().is_scheduled = false;
  DefuseModule(*module);
}

class SizeArguments {
 public:
  explicit SizeArguments(Module* module)
      : module_(*module), static_shapes_(&module->context().shapes), builder_(module, module->entry().id()) {}

  void Run() {
    const int64_t given = module_.entry().parameter_count();
    for (int64_t k = 0; k < given; ++k) Receive(module_.entry().parameter(k).id());
    Return();
    DescribeEntry();
  }

 private:
  ShapeTable& shapes() const { return module_.context().shapes; }
  InstructionId Number(int64_t value) {
    return builder_.MakeScalarConstant(ElementType::kS32, static_cast<double>(value));
  }
  InstructionId SetSize(InstructionId array, Shape shape, int64_t dim, InstructionId size) {
    const AttrValue dimension[] = {builder_.List(Attr::kDimensions, {dim})};
    return builder_.Make(Opcode::kSetDimensionSize, shape, {array, size}, dimension);
  }

  // Returns a value of `shape` with `leaf` applied to its dynamic arrays.
  template <typename Leaf>
  InstructionId Rebuilt(InstructionId value, Shape shape, const Leaf& leaf);
  void Receive(InstructionId parameter);
  InstructionId WithSizes(InstructionId array, Shape shape);
  void Return();
  InstructionId WithoutSizes(InstructionId array, std::vector<InstructionId>* sizes);
  void DescribeEntry();

  Module& module_;
  const StaticShapes static_shapes_;
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

template <typename Leaf>
InstructionId SizeArguments::Rebuilt(InstructionId value, Shape shape, const Leaf& leaf) {
  struct Frame {
    InstructionId tuple;
    Shape shape;
    std::vector<InstructionId> elements;
  };
  if (!shape.IsTuple()) return leaf(value, shape);
  std::vector<Frame> stack;
  stack.push_back({value, shape, {}});
  for (;;) {
    Frame& top = stack.back();
    const auto next = static_cast<int64_t>(top.elements.size());
    if (next == top.shape.tuple_size()) {
      const InstructionId built = builder_.MakeTuple(top.elements);
      stack.pop_back();
      if (stack.empty()) return built;
      stack.back().elements.push_back(built);
      continue;
    }
    const Shape element_shape = top.shape.element(next);
    const Instruction tuple = module_.instruction(top.tuple);
    const InstructionId element =
        tuple.opcode() == Opcode::kTuple ? tuple.operand(next).id() : builder_.MakeElement(top.tuple, next);
    if (!element_shape.has_dynamic_dims()) {
      top.elements.push_back(element);
    } else if (element_shape.IsTuple()) {
      stack.push_back({element, element_shape, {}});
    } else {
      top.elements.push_back(leaf(element, element_shape));
    }
  }
}

void SizeArguments::Receive(InstructionId parameter) {
  const Shape shape = module_.instruction(parameter).shape();
  if (!shape.has_dynamic_dims()) return;
  std::vector<std::pair<InstructionId, int64_t>> users;
  for (const auto& use : module_.instruction(parameter).uses()) users.emplace_back(use.user.id(), use.operand_index);
  const bool is_root = module_.instruction(parameter).is_root();
  builder_.SetInsertionPointAfter(parameter);
  module_.SetShape(parameter, static_shapes_.Of(shape));
  const InstructionId value = Rebuilt(
      parameter, shape, [this](InstructionId array, Shape array_shape) { return WithSizes(array, array_shape); });
  for (const auto& [user, operand] : users) module_.ReplaceOperand(user, operand, value);
  if (is_root) builder_.SetRoot(value);
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

void SizeArguments::Return() {
  const InstructionId root = module_.entry().root().id();
  const Shape shape = builder_.shape_of(root);
  if (!shape.has_dynamic_dims()) return;
  builder_.SetInsertionPoint(InstructionId());
  std::vector<InstructionId> elements, sizes;
  const auto without = [&](InstructionId array, Shape) { return WithoutSizes(array, &sizes); };
  const InstructionId result = Rebuilt(root, shape, without);
  if (shape.IsTuple()) {
    for (const Instruction element : module_.instruction(result).operands()) elements.push_back(element.id());
  } else {
    elements.push_back(result);
    for (InputOutputAlias& alias : module_.header().input_output_alias) {
      alias.output_index = module_.context().lists.Intern({0});
    }
  }
  elements.insert(elements.end(), sizes.begin(), sizes.end());
  builder_.SetRoot(builder_.MakeTuple(elements));
  if (shape.IsTuple()) module_.Erase(result);
  const Instruction before = module_.instruction(root);
  if (before.opcode() == Opcode::kTuple && !before.has_users()) module_.Erase(root);
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
  DissolveFusions(module);
  SizeArguments(module).Run();
  const absl::StatusOr<bool> padded = DynamicPadder().Run(*module);
  if (!padded.ok()) return padded.status();
  return true;
}

}  // namespace hlokit::interp
