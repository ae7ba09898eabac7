// SPDX-License-Identifier: Apache-2.0
#include "parser/mlir/value_names.h"

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"

namespace hlokit::mlir {
namespace {

// The suggested names of results; empty: numbers.
std::vector<std::string> SuggestedNames(const Module& m, const Operation& op) {
  if (op.kind() == OpKind::kStablehloConstant && op.result_count == 1) {
    const NodeId type = m.type(m.result(op));
    if (m.nodes.kind(type) != NodeKind::kTensorType) return {"cst"};
    return {m.nodes.kind(m.nodes.child(type, 0)) == NodeKind::kIntegerType ? "c" : "cst"};
  }
  if (op.kind() == OpKind::kArithConstant && op.result_count == 1) {
    const NodeId value = m.attribute(op, "value");
    const NodeId type = m.type(m.result(op));
    const std::optional<int64_t> number = m.nodes.IntegerValue(value);
    if (!number) return {"cst"};
    if (m.nodes.kind(type) == NodeKind::kIndexType) return {StrCat("c", *number)};
    if (m.nodes.kind(type) == NodeKind::kIntegerType && m.nodes.ints(type)[0] == 1) {
      return {*number != 0 ? "true" : "false"};
    }
    return {StrCat("c", *number, "_", ToText(m.nodes, type))};
  }
  // Operations of several results that all have names.
  if (op.definition == nullptr || op.result_count < 2 || op.definition->results.size() != op.result_count) return {};
  std::vector<std::string> names;
  for (const ValueDefinition& result : op.definition->results) {
    if (result.variadic) return {};
    names.emplace_back(result.name);
  }
  return names;
}

struct Scope {
  RegionId region;
  uint32_t next_value, next_argument, next_conflict;
  size_t depth;  // of the names of enclosing regions
};

}  // namespace

ValueNames::ValueNames(const Module& module) : m_(module) {
  names_.resize(m_.values.size());
  group_.resize(m_.values.size(), 0);
  group_size_.resize(m_.values.size(), 1);
  block_numbers_.resize(m_.blocks.size(), 0);
  absl::flat_hash_map<std::string, bool> used;
  std::vector<std::string> used_order;
  std::vector<Scope> pending = {{m_.top, 0, 0, 0, 0}};
  while (!pending.empty()) {
    Scope scope = pending.back();
    pending.pop_back();
    while (used_order.size() > scope.depth) {
      used.erase(used_order.back());
      used_order.pop_back();
    }
    const auto unique = [&](std::string name) {
      const std::string base = name;
      while (used.contains(name)) name = StrCat(base, "_", scope.next_conflict++);
      used.emplace(name, true);
      used_order.push_back(name);
      return name;
    };
    const OperationId parent = m_.regions[scope.region.value].parent;
    const bool is_while = parent.valid() && m_.kind(parent) == OpKind::kStablehloWhile;
    uint32_t block_number = 0;
    for (BlockId block = m_.block(scope.region); block.valid(); block = m_.blocks[block.value].next) {
      block_numbers_[block.value] = block_number++;
      const struct Block& b = m_.blocks[block.value];
      for (uint32_t i = 0; i < b.argument_count; ++i) {
        names_[b.argument_begin + i] = is_while ? unique("iterArg") : unique(StrCat("arg", scope.next_argument++));
      }
      for (OperationId id = b.first; id.valid(); id = m_.op(id).next) {
        const Operation& op = m_.op(id);
        if (op.result_count == 0) continue;
        const std::vector<std::string> suggested = SuggestedNames(m_, op);
        if (!suggested.empty()) {
          for (uint32_t i = 0; i < op.result_count; ++i) names_[op.result_begin + i] = unique(suggested[i]);
          continue;
        }
        names_[op.result_begin] = StrCat(scope.next_value++);
        group_size_[op.result_begin] = op.result_count;
        for (uint32_t i = 1; i < op.result_count; ++i) {
          names_[op.result_begin + i] = names_[op.result_begin];
          group_[op.result_begin + i] = i;
        }
      }
    }
    scope.depth = used_order.size();
    // The last region is taken first from the stack, so push in reverse.
    std::vector<RegionId> inner;
    for (BlockId block = m_.block(scope.region); block.valid(); block = m_.blocks[block.value].next) {
      for (OperationId id = m_.blocks[block.value].first; id.valid(); id = m_.op(id).next) {
        for (RegionId region : m_.regions_of(m_.op(id))) inner.push_back(region);
      }
    }
    for (size_t i = inner.size(); i-- > 0;) {
      pending.push_back({inner[i], scope.next_value, scope.next_argument, scope.next_conflict, scope.depth});
    }
  }
}

std::string ValueNames::Use(ValueId value) const {
  if (!value.valid()) return "<<UNKNOWN SSA VALUE>>";
  const uint32_t index = group_[value.value];
  const uint32_t size = group_size_[value.value - index];
  std::string text = "%" + names_[value.value];
  if (size > 1) StrAppend(&text, "#", index);
  return text;
}

std::string ValueNames::Results(const Operation& op) const {
  std::string text;
  for (uint32_t i = 0; i < op.result_count;) {
    const uint32_t size = group_size_[op.result_begin + i];
    StrAppend(&text, i == 0 ? "" : ", ", "%", names_[op.result_begin + i]);
    if (size > 1) StrAppend(&text, ":", size);
    i += size;
  }
  return text.empty() ? text : text + " = ";
}

std::string ValueNames::Block(BlockId block) const { return StrCat("^bb", block_numbers_[block.value]); }

}  // namespace hlokit::mlir
