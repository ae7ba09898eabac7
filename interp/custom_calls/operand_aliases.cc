// SPDX-License-Identifier: Apache-2.0
#include "interp/custom_calls/operand_aliases.h"

#include <cstdint>
#include <cstring>
#include <optional>

#include "ir/graph/operand_alias.h"

namespace hlokit::interp {
namespace {

// Returns the number of the leaf at `index`; nullopt for what is no leaf.
std::optional<size_t> LeafAt(Shape shape, absl::Span<const int64_t> index) {
  size_t leaf = 0;
  for (const int64_t element : index) {
    if (!shape.IsTuple() || element < 0 || element >= shape.tuple_size()) return std::nullopt;
    for (int64_t k = 0; k < element; ++k) leaf += static_cast<size_t>(shape.element(k).leaf_count());
    shape = shape.element(element);
  }
  return shape.IsArray() ? std::optional<size_t>(leaf) : std::nullopt;
}

}  // namespace

OperandAliases OperandAliasesOf(Instruction custom_call) {
  OperandAliases aliases;
  absl::Span<const int64_t> encoded = custom_call.list_attr(Attr::kOutputToOperandAliasing);
  while (const std::optional<OperandAlias> alias = NextOperandAlias(&encoded)) {
    if (alias->operand < 0 || alias->operand >= custom_call.operand_count()) continue;
    size_t before = 0;
    for (int64_t k = 0; k < alias->operand; ++k) {
      before += static_cast<size_t>(custom_call.operand(k).shape().leaf_count());
    }
    const std::optional<size_t> from = LeafAt(custom_call.operand(alias->operand).shape(), alias->operand_index);
    const std::optional<size_t> to = LeafAt(custom_call.shape(), alias->output_index);
    if (from && to) aliases.emplace_back(before + *from, *to);
  }
  return aliases;
}

void MakeAliases(const OperandAliases& aliases, absl::Span<CustomCallOperand> operands,
                 absl::Span<const CustomCallResult> results) {
  for (const auto& [from, to] : aliases) {
    if (from >= operands.size() || to >= results.size()) continue;
    CustomCallOperand& operand = operands[from];
    const CustomCallResult& result = results[to];
    const Shape shape = operand.shape;
    if (!shape.IsArray() || !result.shape.IsArray() || operand.data == result.data) continue;
    if (shape.element_type() != result.shape.element_type() || shape.dims() != result.shape.dims()) continue;
    const size_t bytes =
        static_cast<size_t>(shape.element_count()) * static_cast<size_t>(BytesOf(shape.element_type()));
    if (bytes != 0) std::memcpy(result.data, operand.data, bytes);
    operand.data = result.data;
  }
}

}  // namespace hlokit::interp
