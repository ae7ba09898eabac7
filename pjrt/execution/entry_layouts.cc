// SPDX-License-Identifier: Apache-2.0
#include "pjrt/execution/entry_layouts.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "ir/core/str_cat.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode.h"
#include "passes/core/pipeline.h"
#include "pjrt/execution/entry_attributes.h"
#include "pjrt/execution/memory_kinds.h"
#include "pjrt/values/layout.h"

namespace hlokit::pjrt {
namespace {

using Order = std::vector<int64_t>;  // minor to major; empty: row-major

// Layouts, "{0,1}", or nothing for a row-major leaf; of parameters before those of results.
constexpr std::string_view kLayoutsAttribute = "hlokit.layouts";
constexpr char kSeparator = ';';
constexpr std::string_view kLayoutMode = "mhlo.layout_mode";

Order OrderOf(Shape shape) {
  if (!shape.IsArray() || !shape.has_layout()) return {};
  const absl::Span<const int64_t> order = shape.layout()->minor_to_major;
  return CanonicalOrder(Order(order.begin(), order.end()));
}

Order Transposed(const Order& operand, absl::Span<const int64_t> permutation) {
  const size_t rank = permutation.size();
  Order result(rank);
  for (size_t k = 0; k < rank; ++k) {
    const int64_t dim = operand.empty() ? static_cast<int64_t>(rank - 1 - k) : operand[k];
    result[k] = std::find(permutation.begin(), permutation.end(), dim) - permutation.begin();
  }
  return CanonicalOrder(std::move(result));
}

// The orders in which a program without calls makes its arrays.
class NaturalOrders {
 public:
  NaturalOrders(Computation entry, absl::Span<const Order> of_parameters) {
    for (const InstructionId id : PostOrder(entry)) {
      const Instruction i = entry.module().instruction(id);
      if (!i.shape().IsArray()) continue;
      const bool known =
          i.opcode() == Opcode::kParameter && static_cast<size_t>(i.parameter_number()) < of_parameters.size();
      orders_[id.value] = known ? of_parameters[static_cast<size_t>(i.parameter_number())] : Infer(i);
    }
  }
  Order Of(Instruction i) const {
    const auto it = orders_.find(i.id().value);
    return it == orders_.end() ? Order() : it->second;
  }

 private:
  Order Infer(Instruction i) const {
    if (i.opcode() == Opcode::kTranspose) return Transposed(Of(i.operand(0)), i.list_attr(Attr::kDimensions));
    // A custom call says the layout of its result, if it has a say in it.
    if (i.opcode() == Opcode::kCustomCall) {
      Order said = OrderOf(i.shape());
      return said.empty() && i.operand_count() == 1 && IsAnnotation(i) ? Of(i.operand(0)) : said;
    }
    const bool keeps =
        HasTrait(i.opcode(), kElementwise) || HasTrait(i.opcode(), kKeepsLayout) || i.opcode() == Opcode::kCopy;
    if (!keeps) return {};
    for (const Instruction operand : i.operands()) {
      if (!operand.shape().IsArray() || operand.shape().rank() != i.shape().rank()) continue;
      if (Order order = Of(operand); !order.empty()) return order;
    }
    return {};
  }
  static bool IsAnnotation(Instruction i) { return i.string_attr(Attr::kCustomCallTarget) == "Sharding"; }

  std::map<uint32_t, Order> orders_;
};

// Returns the orders that the leaves of a result would have, given those of the parameters.
absl::StatusOr<std::vector<Order>> NaturalResultOrders(const Module& module, absl::Span<const Order> of_parameters) {
  Module inlined = module.Clone();
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse("inline");
  if (!pipeline.ok()) return pipeline.status();
  if (const absl::Status status = pipeline->Run(inlined).status(); !status.ok()) return status;
  const NaturalOrders orders(inlined.entry(), of_parameters);
  const Instruction root = inlined.entry().root();
  std::vector<Order> result;
  if (root.opcode() == Opcode::kTuple) {
    for (const Instruction operand : root.operands()) {
      const auto leaves = static_cast<size_t>(operand.shape().leaf_count());
      result.insert(result.end(), leaves, operand.shape().IsArray() ? orders.Of(operand) : Order());
    }
  } else {
    result.assign(static_cast<size_t>(root.shape().leaf_count()), root.shape().IsArray() ? orders.Of(root) : Order());
  }
  return result;
}

// What HLO says of the layouts of the leaves; empty for leaves of which it says nothing.
std::vector<Order> SaidByHlo(const Module& module, size_t leaves) {
  std::vector<Order> orders;
  if (!module.header().entry_layout) return std::vector<Order>(leaves);
  const EntryLayout& layout = *module.header().entry_layout;
  const auto add = [&orders](Shape shape) {
    for (const Shape leaf : Leaves(shape)) orders.push_back(OrderOf(leaf));
  };
  for (const Shape parameter : layout.parameters) add(parameter);
  if (layout.result.valid()) add(layout.result);
  orders.resize(leaves);
  return orders;
}

}  // namespace

absl::Status MarkLayouts(Module* module) {
  const std::vector<EntryLeaf> leaves = EntryLeaves(*module, kLayoutMode);
  std::vector<Order> orders = SaidByHlo(*module, leaves.size());
  const size_t results = static_cast<size_t>(module->entry().root().shape().leaf_count());
  const size_t parameters = leaves.size() - results;
  bool any_auto = false;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const std::string& said = leaves[i].value;
    any_auto = any_auto || (said == "auto" && i >= parameters);
    if (said.empty() || said == "default" || said == "auto" || !leaves[i].shape.IsArray()) continue;
    absl::StatusOr<Order> order = ParseOrder(said, leaves[i].shape.rank());
    if (!order.ok()) return order.status();
    orders[i] = *std::move(order);
  }
  if (any_auto && static_cast<int64_t>(parameters) == module->entry().parameter_count()) {
    const absl::StatusOr<std::vector<Order>> natural =
        NaturalResultOrders(*module, absl::MakeConstSpan(orders).subspan(0, parameters));
    if (!natural.ok()) return natural.status();
    for (size_t i = 0; i < results && i < natural->size(); ++i) {
      if (leaves[parameters + i].value == "auto") orders[parameters + i] = (*natural)[i];
    }
  }
  if (std::all_of(orders.begin(), orders.end(), [](const Order& order) { return order.empty(); })) {
    return absl::OkStatus();
  }
  std::string text;
  for (size_t i = 0; i < orders.size(); ++i) {
    if (i != 0) text.push_back(kSeparator);
    if (!orders[i].empty()) text += LayoutText(orders[i], orders[i].size());
  }
  SetHeaderAttribute(module, kLayoutsAttribute, text);
  return absl::OkStatus();
}

void ReadLayouts(const Module& module, absl::Span<ProgramValue> parameters, absl::Span<ProgramValue> results) {
  const std::string_view text = HeaderAttribute(module, kLayoutsAttribute);
  if (text.empty()) return;
  const std::vector<std::string> layouts = absl::StrSplit(std::string(text), kSeparator);
  if (layouts.size() != parameters.size() + results.size()) return;
  for (size_t i = 0; i < layouts.size(); ++i) {
    if (layouts[i].empty()) continue;
    ProgramValue& value = i < parameters.size() ? parameters[i] : results[i - parameters.size()];
    absl::StatusOr<Order> order = ParseOrder(layouts[i], static_cast<int64_t>(value.spec.dims.size()));
    if (order.ok()) value.spec.minor_to_major = *std::move(order);
  }
}

namespace {

// Writes those of the values that are the leaves of `shape`, which begin with `*next`.
void WriteLeaves(absl::Span<const ProgramValue> values, size_t* next, xla::ShapeProto* shape) {
  if (shape->element_type() == xla::TUPLE) {
    for (xla::ShapeProto& element : *shape->mutable_tuple_shapes()) {
      if (element.element_type() == xla::TUPLE) return;  // programs have results of one level
      WriteLeaves(values, next, &element);
    }
    return;
  }
  if (*next >= values.size()) return;
  const ProgramValue& value = values[(*next)++];
  if (!value.spec.minor_to_major.empty()) {
    shape->mutable_layout()->clear_minor_to_major();
    for (const int64_t dim : value.spec.minor_to_major) shape->mutable_layout()->add_minor_to_major(dim);
  }
  if (value.memory_kind != 0) shape->mutable_layout()->set_memory_space(kHostMemorySpace);
}

}  // namespace

void WriteLayouts(const Program& program, xla::ProgramShapeProto* signature) {
  size_t next = 0;
  for (xla::ShapeProto& parameter : *signature->mutable_parameters()) {
    WriteLeaves(program.parameters, &next, &parameter);
  }
  next = 0;
  WriteLeaves(program.results, &next, signature->mutable_result());
}

}  // namespace hlokit::pjrt
