// SPDX-License-Identifier: Apache-2.0
// Rules of calls of the backend and the host.
#include <algorithm>

#include "parser/stablehlo/verify/verify_rules.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

// Layouts of values of the types, one for each: permutations of dimensions, of other values empty.
bool Rules::CheckLayouts(const std::vector<NodeId>& types, NodeId layouts, std::string_view what) {
  if (types.size() != n.child_count(layouts)) {
    return Fail(StrCat("Number of ", what, "s must match the number of ", what, " layouts, ", types.size(),
                       " != ", n.child_count(layouts)));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const NodeId layout = n.child(layouts, i);
    if (n.kind(types[i]) == NodeKind::kTupleType) {
      return Fail("Tuple types are not fully supported with layout constraints yet");
    }
    Ints order = n.Integers(layout).value_or(Ints());
    if (!IsTensor(types[i])) {
      if (order.empty() || n.kind(types[i]) == NodeKind::kMemRefType) continue;
      return Fail(StrCat("Only tensor types can have non-empty layout: ", what, " #", i, " of type '", Text(types[i]),
                         "' has layout ", Text(layout)));
    }
    Ints sorted = order, range;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t d = 0; d < rank(types[i]); ++d) range.push_back(d);
    if (sorted == range) continue;
    return Fail(StrCat("incorrect layout ", Text(layout), " for type '", Text(types[i]),
                       "', layout must be a permutation of [0, ", rank(types[i]), ")"));
  }
  return true;
}

bool Rules::CheckCustomCallLayouts() {
  const NodeId operands = m.attribute(op, "operand_layouts"), results = m.attribute(op, "result_layouts");
  if (operands.valid() != results.valid()) {
    return Fail("Layout attributes should be specified for either both operands and results or none.");
  }
  if (!operands.valid()) return true;
  std::vector<NodeId> types, result_types;
  for (size_t i = 0; i < op.operand_count; ++i) types.push_back(operand(i));
  for (size_t i = 0; i < op.result_count; ++i) result_types.push_back(result(i));
  // A tuple as the only result has a layout for each element.
  if (result_types.size() == 1 && n.kind(result_types[0]) == NodeKind::kTupleType) {
    result_types = n.children(result_types[0]);
  }
  return CheckLayouts(types, operands, "operand") && CheckLayouts(result_types, results, "result");
}

bool Rules::CheckCustomCallAliases() {
  const NodeId aliases = m.attribute(op, "output_operand_aliases");
  if (!aliases.valid()) return true;
  for (NodeId alias : n.children(aliases)) {
    if (n.kind(alias) != NodeKind::kFields) return Fail("expects output_operand_aliases to be aliases");
    const int64_t index = n.IntegerValue(n.Entry(alias, "operand_index")).value_or(0);
    if (index < 0 || index >= static_cast<int64_t>(op.operand_count)) {
      return Fail(StrCat("expects operandIndex in the output_operand_alias attribute to be in range [0, ",
                         op.operand_count, "); got: ", index, "."));
    }
    // The part of a type that the indices lead to; invalid if they lead out of it.
    const auto part = [&](NodeId type, const Ints& path) {
      for (int64_t i : path) {
        if (n.kind(type) != NodeKind::kTupleType || i < 0 || i >= static_cast<int64_t>(n.child_count(type)))
          return NodeId();
        type = n.child(type, static_cast<size_t>(i));
      }
      return type;
    };
    const NodeId from = part(operand(static_cast<size_t>(index)), Field(alias, "operand_tuple_indices"));
    if (!from.valid()) return Fail("operand_tuple_indices in the output_operand_alias attribute out of bounds");
    Ints path = Field(alias, "output_tuple_indices");
    NodeId to;
    if (op.result_count == 1) {
      to = part(result(), path);
    } else if (!path.empty() && path[0] >= 0 && path[0] < static_cast<int64_t>(op.result_count)) {
      const auto first = static_cast<size_t>(path[0]);
      path.erase(path.begin());
      to = part(result(first), path);
    }
    if (!to.valid()) return Fail("output_tuple_indices in the output_operand_alias attribute out of bounds");
    if (from == to) continue;
    return Fail(StrCat("shapes mismatch in the output_operand_alias attribute: operand part has type '", Text(from),
                       "' and output part has type '", Text(to), "'"));
  }
  return true;
}

bool Rules::CheckBackendConfig() {
  const NodeId config = m.attribute(op, "backend_config");
  if (!config.valid()) return true;
  static constexpr std::string_view kVersions[] = {"API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL",
                                                   "API_VERSION_STATUS_RETURNING",
                                                   "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};
  const int64_t version = Int("api_version", 1);
  if (version < 0 || version >= static_cast<int64_t>(std::size(kVersions))) return true;
  const bool typed = version == 4;
  if (n.kind(config) == (typed ? NodeKind::kDictionary : NodeKind::kString)) return true;
  return Fail(StrCat("backend_config for api_version ", kVersions[version], " must be a ",
                     typed ? "dictionary" : "string", " attribute"));
}

bool Rules::CheckReceived() {
  if (op.result_count == 0) return Fail("result is expected to be at least of size 1, but got 0");
  const NodeId last = result(op.result_count - 1);
  if (!Satisfies(n, mlir::TypeConstraint::kToken, last)) {
    return Fail(StrCat("last element of result types is expected to be of token type, but got '", Text(last), "'"));
  }
  for (size_t i = 0; i + 1 < op.result_count; ++i) {
    if (IsTensor(result(i)) || n.kind(result(i)) == NodeKind::kTupleType) continue;
    return Fail(StrCat("everything but the last element of result types is expected to be of tensor type, but got '",
                       Text(result(i)), "'"));
  }
  return true;
}

bool Rules::CheckInfeed() {
  const NodeId layout = m.attribute(op, "layout");
  if (!layout.valid()) return true;
  if (n.child_count(layout) != op.result_count - 1) {
    return Fail(StrCat("layout-attribute size must be ", op.result_count - 1,
                       " (which is the number of op-results - 1 (for token result)), but got ", n.child_count(layout)));
  }
  for (NodeId item : n.children(layout)) {
    if (n.kind(item) != NodeKind::kArray) {
      return Fail(StrCat("layout-attribute expected to have elements of type array, but got ", Text(item)));
    }
    for (NodeId number : n.children(item)) {
      if (n.kind(number) == NodeKind::kInteger) continue;
      return Fail("layout-attribute's leaf elements are expected to be of type integer");
    }
  }
  return true;
}

}  // namespace hlokit::stablehlo
