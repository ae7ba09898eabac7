// SPDX-License-Identifier: Apache-2.0
// Rules of control flow, of regions of scalars, and of composites.
#include <algorithm>

#include "parser/stablehlo/verify/verify_rules.h"

namespace hlokit::stablehlo {

using mlir::kDynamicSize;
using mlir::NodeId;
using mlir::NodeKind;
using mlir::OpKind;

const mlir::Block* Rules::BlockOf(size_t region) const {
  const mlir::BlockId id = m.block(m.regions_of(op)[region]);
  return id.valid() ? &m.blocks[id.value] : nullptr;
}

std::vector<NodeId> Rules::ReturnedTypes(const mlir::Block& block) const {
  std::vector<NodeId> types;
  if (!block.last.valid()) return types;
  for (mlir::ValueId value : m.operands_of(m.op(block.last))) types.push_back(m.type(value));
  return types;
}

std::vector<NodeId> Rules::ArgumentTypes(const mlir::Block& block) const {
  std::vector<NodeId> types;
  for (size_t i = 0; i < block.argument_count; ++i) types.push_back(m.type(m.argument(block, i)));
  return types;
}

bool Rules::CheckWhile() {
  std::vector<NodeId> state;
  for (size_t i = 0; i < op.operand_count; ++i) state.push_back(operand(i));
  const auto compatible = [&](const std::vector<NodeId>& types) {
    bool good = types.size() == state.size();
    for (size_t i = 0; good && i < types.size(); ++i) good = Compatible(state[i], types[i]);
    return good;
  };
  for (size_t r = 0; r < 2; ++r) {
    const mlir::Block* const block = BlockOf(r);
    if (block == nullptr) return Fail("expects a non-empty region");
    const std::vector<NodeId> arguments = ArgumentTypes(*block);
    if (compatible(arguments)) continue;
    return Fail(StrCat("expect operands to be compatible with ", r == 0 ? "condition" : "body",
                       " block arguments but got ", TypesText(state), " vs ", TypesText(arguments)));
  }
  const std::vector<NodeId> condition = ReturnedTypes(*BlockOf(0)), next = ReturnedTypes(*BlockOf(1));
  if (condition.size() != 1) {
    return Fail(StrCat("expect condition body returns a single value but got ", condition.size()));
  }
  if (!IsTensor(condition[0]) || rank(condition[0]) != 0 || Text(element(condition[0])) != "i1") {
    return Fail(StrCat("expect condition block return a zero-ranked tensor of i1 but got '", Text(condition[0]), "'"));
  }
  if (compatible(next)) return true;
  return Fail(StrCat("expect operands to be compatible with body block return types but got ", TypesText(state), " vs ",
                     TypesText(next)));
}

bool Rules::CheckBranches() {
  const bool is_case = op.kind() == OpKind::kStablehloCase;
  if (op.region_count == 0) return FailInference("expect at least one branch");
  if (rank(operand(0)) != 0)
    return FailInference(StrCat("operand should be rank 0 tensor but got rank ", rank(operand(0))));
  std::vector<NodeId> first;
  for (size_t r = 0; r < op.region_count; ++r) {
    const mlir::Block* const block = BlockOf(r);
    if (block == nullptr) return FailInference(StrCat("branch ", r, " is empty"));
    if (block->argument_count != 0) {
      return FailInference(StrCat("branch ", r, " must have 0 arguments, but found ", block->argument_count));
    }
    const std::vector<NodeId> types = ReturnedTypes(*block);
    if (r == 0) {
      first = types;
      continue;
    }
    bool same = types.size() == first.size();
    for (size_t i = 0; same && i < types.size(); ++i) same = TypesInfer(first[i], types[i]);
    if (!same) {
      return FailInference(is_case
                               ? StrCat("branch 0 and branch ", r, " have mismatched return types: ", TypesText(first),
                                        " vs ", TypesText(types))
                               : StrCat("branch 0 and branch 1 have mismatched return types: ", TypesText(first),
                                        " vs ", TypesText(types)));
    }
  }
  return CheckResults(first);
}

bool Rules::CheckMap() {
  const mlir::Block* const block = BlockOf(0);
  if (block == nullptr) return Fail("expects a non-empty region");
  const std::vector<NodeId> arguments = ArgumentTypes(*block), returned = ReturnedTypes(*block);
  if (arguments.size() != op.operand_count) {
    return FailInference(StrCat("expects number of operands to match the arity of map computation, but got: ",
                                op.operand_count, " and ", arguments.size()));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!IsTensor(arguments[i]) || rank(arguments[i]) != 0) {
      return FailInference(StrCat("computation arguments must be 0-rank tensor, but got: arg #", i, " of type '",
                                  Text(arguments[i]), "'"));
    }
    if (!CompatibleElements(element(arguments[i]), element(operand(i)))) {
      return FailInference(StrCat("element type of operands and computation arguments must match, but got: '",
                                  Text(element(operand(i))), "' and '", Text(element(arguments[i])), "'"));
    }
  }
  if (returned.size() != 1) {
    return FailInference(StrCat("computation must return single output, but got: ", returned.size()));
  }
  if (!IsTensor(returned[0]) || rank(returned[0]) != 0) {
    return FailInference(StrCat("computation must return 0-rank tensor, but got: '", Text(returned[0]), "'"));
  }
  const Ints dimensions = List("dimensions");
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i] == static_cast<int64_t>(i)) continue;
    return FailInference(
        StrCat("requires monotonically increasing dimension numbers, but got: ", ListText(dimensions)));
  }
  for (size_t i = 0; i < op.operand_count; ++i) {
    if (static_cast<int64_t>(dimensions.size()) == rank(operand(i))) continue;
    return FailInference(StrCat("applied to a subset of dimensions currently not supported: operand dimensions = ",
                                rank(operand(i)), ", requested map dimensions size = ", dimensions.size()));
  }
  Ints shape(sizes(operand(0)).begin(), sizes(operand(0)).end());
  for (size_t i = 1; i < op.operand_count; ++i) {
    if (!ShapesAgree(sizes(operand(i)), shape)) return FailInference("requires the same shape for all operands");
  }
  return CheckResults({TensorOf(shape, element(returned[0]))});
}

bool Rules::CheckSort() {
  const int64_t dimension = Int("dimension", -1);
  for (size_t i = 0; i < op.operand_count; ++i) {
    if (rank(operand(0)) != 0 && (dimension < -rank(operand(i)) || dimension >= rank(operand(i)))) {
      return FailInference(StrCat("dimension attribute value must be in range [-", rank(operand(i)), ", ",
                                  rank(operand(i)), "), but found ", dimension));
    }
    if (!ShapesAgree(sizes(operand(i)), sizes(operand(0)))) {
      return FailInference("requires the same shape for all operands");
    }
  }
  const mlir::Block* const block = BlockOf(0);
  if (block == nullptr) return Fail("expects a non-empty region");
  const std::vector<NodeId> arguments = ArgumentTypes(*block), returned = ReturnedTypes(*block);
  if (arguments.size() != 2 * op.operand_count) {
    return Fail(StrCat("comparator block should have ", 2 * op.operand_count, " arguments"));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const NodeId type = TensorOf({}, element(operand(i / 2)));
    if (TypesInfer(type, arguments[i])) continue;
    return Fail(StrCat("comparator block argument #", i, " should be of type '", Text(type), "' but got '",
                       Text(arguments[i]), "'"));
  }
  if (returned.size() != 1) return Fail(StrCat("comparator must return single output but got ", returned.size()));
  if (!IsTensor(returned[0]) || rank(returned[0]) != 0 || Text(element(returned[0])) != "i1") {
    return Fail(StrCat("comparator must return tensor<i1> but got '", Text(returned[0]), "'"));
  }
  return InferEachOperand();
}

bool Rules::CheckScan() {
  const Ints segments = List("operandSegmentSizes");
  const mlir::Block* const block = BlockOf(0);
  if (block == nullptr) return Fail("expects a non-empty region");
  const int64_t dimension = Int("dimension");
  const size_t inputs = segments.empty() || segments[0] < 0 ? op.operand_count : static_cast<size_t>(segments[0]);
  std::optional<int64_t> size;
  if (Has("scan_dim_size")) size = Int("scan_dim_size");
  std::vector<NodeId> expected;
  for (size_t i = 0; i < op.operand_count; ++i) {
    if (i >= inputs) {
      expected.push_back(operand(i));
      continue;
    }
    if (dimension < 0 || dimension >= rank(operand(i))) {
      return Fail(StrCat("scan dimension of operand ", i, " is out of bounds"));
    }
    Ints shape(sizes(operand(i)).begin(), sizes(operand(i)).end());
    const int64_t scanned = shape[static_cast<size_t>(dimension)];
    if (size && !SizesAgree(*size, scanned)) return Fail(StrCat("invalid scan dimension size of operand ", i));
    if (!size && scanned != kDynamicSize) size = scanned;
    shape.erase(shape.begin() + dimension);
    expected.push_back(TensorOf(shape, element(operand(i))));
  }
  if (block->argument_count != expected.size()) {
    return Fail(StrCat("expects ", expected.size(), " arguments in the body, but got ", block->argument_count));
  }
  const std::vector<NodeId> arguments = ArgumentTypes(*block);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!TypesInfer(expected[i], arguments[i]))
      return Fail(StrCat("operand and body argument ", i, " are incompatible"));
  }
  return true;
}

bool Rules::CheckTuple() {
  std::vector<NodeId> types;
  for (size_t i = 0; i < op.operand_count; ++i) types.push_back(operand(i));
  return CheckResults({const_cast<mlir::NodeTable&>(n).Make(NodeKind::kTupleType, "", {}, types)});
}

bool Rules::CheckGetTupleElement() {
  const NodeId tuple = operand(0);
  const int64_t index = Int("index");
  const auto count = static_cast<int64_t>(n.child_count(tuple));
  if (index >= count) {
    return FailInference(StrCat("index ", index, " is out of bounds of operand with size ", count));
  }
  return CheckResults({n.child(tuple, static_cast<size_t>(index))});
}

bool Rules::CheckComposite() {
  // A name of parts between dots, the first one a namespace.
  const NodeId name_attribute = m.attribute(op, "name");
  const std::string_view name = n.text(name_attribute);
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto follows = [&](char c) { return letter(c) || c == '_' || c == '$' || c == '.' || (c >= '0' && c <= '9'); };
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos || !letter(name[0]) || !std::all_of(name.begin(), name.end(), follows) ||
      dot + 1 == name.size()) {
    return Fail("name must be a valid namespaced op name");
  }
  const NodeId symbol = m.attribute(op, "decomposition");
  const auto found = symbols_.find(n.text(symbol));
  if (found == symbols_.end() || found->second->kind() != OpKind::kFuncFunc) {
    return Fail(StrCat("'", n.text(symbol), "' does not reference a valid function"));
  }
  const NodeId type = m.attribute(*found->second, "function_type");
  if (!type.valid() || n.kind(type) != NodeKind::kFunctionType) return true;
  const auto inputs = static_cast<size_t>(n.ints(type)[0]), results = n.child_count(type) - inputs;
  if (inputs != op.operand_count) {
    return Fail(StrCat("has ", op.operand_count, " operand(s), but decomposition has ", inputs));
  }
  for (size_t i = 0; i < inputs; ++i) {
    if (TypesInfer(operand(i), n.child(type, i))) continue;
    return Fail(StrCat("operand at index ", i, " has type '", Text(operand(i)), "', but decomposition has type '",
                       Text(n.child(type, i)), "'"));
  }
  if (results != op.result_count) {
    return Fail(StrCat("has ", op.result_count, " result(s), but decomposition has ", results));
  }
  for (size_t i = 0; i < results; ++i) {
    if (TypesInfer(result(i), n.child(type, inputs + i))) continue;
    return Fail(StrCat("result at index ", i, " has type '", Text(result(i)), "', but decomposition has type '",
                       Text(n.child(type, inputs + i)), "'"));
  }
  return true;
}

bool Rules::CheckAsyncStart() {
  const auto fail = [&](std::string message) {
    Fail(std::move(message));
    return Fail("failed to infer returned types");
  };
  const mlir::Block* const block = BlockOf(0);
  if (block == nullptr || !block->first.valid()) return fail("expects a non-empty region");
  if (block->argument_count != op.operand_count) {
    return fail(StrCat("number of operands (", op.operand_count, ") must match number of region arguments (",
                       block->argument_count, ")"));
  }
  for (size_t i = 0; i < op.operand_count; ++i) {
    const NodeId type = m.type(m.argument(*block, i));
    if (type == operand(i)) continue;
    return fail(StrCat("operand type '", Text(operand(i)), "' at index ", i, " must match region argument type '",
                       Text(type), "'"));
  }
  static constexpr OpKind kAllowed[] = {
      OpKind::kStablehloAllGather,     OpKind::kStablehloAllReduce,         OpKind::kStablehloAllToAll,
      OpKind::kStablehloReduceScatter, OpKind::kStablehloCollectivePermute, OpKind::kStablehloCollectiveBroadcast,
      OpKind::kStablehloSlice,         OpKind::kStablehloDynamicSlice,      OpKind::kStablehloDynamicUpdateSlice,
      OpKind::kStablehloCustomCall,    OpKind::kStablehloCollectiveReduce};
  // An asynchronous computation of HLO may be any (export.h).
  if (m.attribute(op, "hlokit.opcode").valid()) return true;
  if (std::find(std::begin(kAllowed), std::end(kAllowed), m.kind(block->first)) == std::end(kAllowed)) {
    return fail("region must contain a collective or slice operation");
  }
  if (m.op(block->first).next != block->last) return fail("region must contain one operation and its return");
  return true;
}

bool Rules::CheckAsyncFuture() {
  const mlir::Block* const block = BlockOf(0);
  if (block == nullptr || n.kind(result()) != NodeKind::kFutureType) return true;
  const std::vector<NodeId> returned = ReturnedTypes(*block);
  bool same = n.child_count(result()) == returned.size();
  for (size_t i = 0; same && i < returned.size(); ++i) same = TypesInfer(returned[i], n.child(result(), i));
  if (same) return true;
  return FailResults({const_cast<mlir::NodeTable&>(n).Make(NodeKind::kFutureType, "", {}, returned)});
}

// ---- functions ----

bool Rules::CheckFunction() {
  const NodeId type = m.attribute(op, "function_type");
  if (n.kind(type) != NodeKind::kFunctionType) return Fail("requires a function type");
  const mlir::Block* const block = op.region_count == 0 ? nullptr : BlockOf(0);
  if (block == nullptr) return true;  // a declaration
  const auto inputs = static_cast<size_t>(n.ints(type)[0]);
  if (block->argument_count != inputs) {
    return Fail(StrCat("entry block must have ", inputs, " arguments to match function signature"));
  }
  for (size_t i = 0; i < inputs; ++i) {
    const NodeId argument = m.type(m.argument(*block, i));
    if (argument == n.child(type, i)) continue;
    return Fail(StrCat("type of entry block argument #", i, "('", Text(argument),
                       "') must match the type of the corresponding argument in function signature('",
                       Text(n.child(type, i)), "')"));
  }
  return true;
}

bool Rules::CheckFunctionReturn() {
  const mlir::OperationId parent = m.regions[m.blocks[op.block.value].region.value].parent;
  if (!parent.valid() || m.kind(parent) != OpKind::kFuncFunc) return Fail("expects parent op 'func.func'");
  const NodeId type = m.attribute(m.op(parent), "function_type");
  if (!type.valid() || n.kind(type) != NodeKind::kFunctionType) return true;  // reported there
  const NodeId symbol = m.attribute(m.op(parent), "sym_name");
  const std::string name = StrCat("@", symbol.valid() ? n.text(symbol) : "");
  const auto inputs = static_cast<size_t>(n.ints(type)[0]), results = n.child_count(type) - inputs;
  if (op.operand_count != results) {
    return Fail(StrCat("has ", op.operand_count, " operands, but enclosing function (", name, ") returns ", results));
  }
  for (size_t i = 0; i < results; ++i) {
    const NodeId result = n.child(type, inputs + i);
    if (!m.operands_of(op)[i].valid() || operand(i) == result) continue;
    return Fail(StrCat("type of return operand ", i, " ('", Text(operand(i)),
                       "') doesn't match function result type ('", Text(result), "') in function ", name));
  }
  return true;
}

}  // namespace hlokit::stablehlo
