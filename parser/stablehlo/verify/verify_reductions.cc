// SPDX-License-Identifier: Apache-2.0
// Rules of reductions and of what their windows and regions may be.
#include <algorithm>

#include "parser/stablehlo/verify/verify_rules.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;
using mlir::OpKind;

bool Rules::CheckReducer(size_t region, const std::vector<NodeId>& inputs, const std::vector<NodeId>& inits,
                         const Ints& allowed) {
  const mlir::BlockId id = m.block(m.regions_of(op)[region]);
  if (!id.valid()) return Fail("expects a non-empty region");
  const mlir::Block& block = m.blocks[id.value];
  const size_t count = inputs.size();
  if (block.argument_count != 2 * count) {
    return Fail(StrCat("Reduction-region must take ", 2 * count, " parameters, but takes ", block.argument_count,
                       " parameter(s)"));
  }
  const mlir::Operation* last = block.last.valid() ? &m.op(block.last) : nullptr;
  if (last == nullptr || last->operand_count == 0) return Fail("The reduction-region expected to return some value(s)");
  if (last->operand_count != count) {
    return Fail(StrCat("Reduction-region here must produce ", count, " tensors, but produces ", last->operand_count,
                       " instead"));
  }
  std::vector<NodeId> results;
  for (mlir::ValueId value : m.operands_of(*last)) {
    const NodeId type = m.type(value);
    if (!IsTensor(type)) {
      return Fail(
          StrCat("Reduction-region here must produce tensor-typed result(s), but produces '", Text(type), "' instead"));
    }
    results.push_back(type);
  }
  const auto argument = [&](size_t i) { return m.type(m.argument(block, i)); };
  for (size_t i = 0; i < count; ++i) {
    for (size_t at : {i, count + i}) {
      if (Compatible(results[i], argument(at))) continue;
      return Fail(StrCat("The type of reduction-region's parameter at index ", at,
                         " is different than the corresponding result type: '", Text(argument(at)), "' vs '",
                         Text(results[i]), "'"));
    }
    const auto promotable = [&](NodeId from, NodeId to) {
      if (from == to) return true;
      if (n.kind(from) != n.kind(to)) return false;
      const auto width = [&](NodeId type) -> int64_t {
        if (n.kind(type) == NodeKind::kIntegerType) return n.ints(type)[0];
        const std::optional<ElementType> hlo = n.HloElementType(type);
        return hlo ? BitsOf(*hlo) : 0;
      };
      if (n.kind(from) == NodeKind::kDialectType) {
        // quant.uniform<i8:f32, ...>: the expressed types are equal, and the storage does not become narrower.
        const std::optional<mlir::QuantizedType> a = mlir::ParseQuantized(n.text(from));
        const std::optional<mlir::QuantizedType> b = mlir::ParseQuantized(n.text(to));
        if (!a || !b) return true;  // blocks of several axes are not compared
        return a->expressed == b->expressed && a->is_signed == b->is_signed && a->width <= b->width;
      }
      if (n.kind(from) == NodeKind::kIntegerType && n.ints(from)[1] != n.ints(to)[1]) return false;
      return width(from) <= width(to);
    };
    if (i < inits.size() && IsTensor(inits[i])) {
      if (!ShapesAgree(sizes(results[i]), sizes(inits[i]))) {
        return Fail(StrCat("The shape of reduction-region's result type at index ", i,
                           " differs from the op's corresponding init-value type: '", Text(results[i]), "' vs '",
                           Text(inits[i]), "'"));
      }
      if (!promotable(element(inits[i]), element(results[i]))) {
        return Fail(StrCat("The element-type of reduction-region's result type at index ", i,
                           " is expected to be promotable from the op's corresponding init-value element-type: '",
                           Text(results[i]), "' vs '", Text(inits[i]), "'"));
      }
    }
    const NodeId value = argument(count + i);
    if (!IsTensor(inputs[i]) || !IsTensor(value)) continue;
    if (!promotable(element(inputs[i]), element(value))) {
      return Fail(StrCat("The element-type of reduction-region's argument at index ", count + i,
                         " is expected to be promotable from '", Text(element(inputs[i])), "', but got '",
                         Text(element(value)), "'"));
    }
    if (sizes(value).size() > allowed.size()) {
      return Fail(StrCat("The rank of reduction-region's argument at index ", count + i,
                         " is expected to be <= ", allowed.size(), ", got ", rank(value)));
    }
    size_t at = 0;
    for (int64_t size : sizes(value)) {
      while (at < allowed.size() && !SizesAgree(allowed[at], size)) ++at;
      if (at++ >= allowed.size()) {
        return Fail(StrCat("The shape of reduction-region's argument at index ", count + i,
                           " is not compatible with that of reduce-op's input-parameter at index ", i));
      }
    }
  }
  return true;
}

bool Rules::CheckReduce() {
  const size_t count = op.operand_count / 2;
  if (op.operand_count % 2 != 0 || count == 0) return Fail("expects as many initial values as inputs");
  std::vector<NodeId> inputs, inits;
  for (size_t i = 0; i < count; ++i) {
    inputs.push_back(operand(i));
    inits.push_back(operand(count + i));
    if (!ShapesAgree(sizes(inputs[i]), sizes(inputs[0]))) return Fail("expects all inputs to have compatible shapes.");
  }
  Ints seen;
  for (int64_t d : List("dimensions")) {
    if (d < 0 || d >= rank(inputs[0])) {
      return Fail(StrCat("Out-of-bounds dimension ", d, ", expected to be in range [0, ", rank(inputs[0]), ")"));
    }
    if (std::find(seen.begin(), seen.end(), d) != seen.end()) return Fail(StrCat("Duplicate reduction dimension: ", d));
    seen.push_back(d);
  }
  Ints kept;
  for (int64_t d = 0; d < rank(inputs[0]); ++d) {
    if (std::find(seen.begin(), seen.end(), d) == seen.end()) kept.push_back(sizes(inputs[0])[static_cast<size_t>(d)]);
  }
  if (!CheckReducer(0, inputs, inits, kept)) return false;
  std::vector<NodeId> types;
  for (NodeId returned : ReturnedTypes(*BlockOf(0))) types.push_back(TensorOf(kept, element(returned)));
  return CheckResults(types);
}

bool Rules::CheckPaddingShape() {
  const NodeId padding = m.attribute(op, "padding");
  if (!padding.valid() || n.kind(padding) != NodeKind::kDense) return true;
  const NodeId type = n.child(padding, 0);
  if (sizes(type).size() == 2 && sizes(type)[1] == 2) return true;
  return Fail(StrCat("expects the shape of padding-attribute to be {N, 2}, but got {", ListText(sizes(type)), "}."));
}

bool Rules::CheckWindow(size_t count, const Ints& window, std::string_view base, std::string_view dilation) {
  struct Part {
    std::string_view attribute, what, positive;
  };
  const Part parts[] = {{"window_strides", "window-strides", "stride"},
                        {base, "base-dilation factors", "base dilation factor"},
                        {dilation, "window-dilation factors", "window dilation factor"},
                        {"window_reversal", "window-reversal", ""}};
  if (!CheckPaddingShape()) return false;
  for (const Part& part : parts) {
    if (!Has(part.attribute)) continue;
    const Ints values = List(part.attribute);
    if (values.empty()) continue;
    const bool dynamic = op.kind() == OpKind::kStablehloDynamicConv;  // which StableHLO lets have more
    if (dynamic ? values.size() < count : values.size() != count) {
      return Fail(StrCat("expects ", part.what, " to have same dimension-size as size of window dimensions (", count,
                         "), but got: ", values.size(), "."));
    }
  }
  if (!List("padding").empty() && List("padding").size() != 2 * count) {
    return Fail(StrCat("expects padding-entries to have same dimension-size as size of window dimensions (", count,
                       "), but got: ", List("padding").size() / 2, "."));
  }
  for (size_t i = 0; i < window.size(); ++i) {
    if (window[i] <= 0 && window[i] != mlir::kDynamicSize) {
      return Fail(
          StrCat("expects window to have positive value for ", i, "-th window dimension, but got ", window[i], "."));
    }
  }
  for (const Part& part : parts) {
    if (part.positive.empty() || !Has(part.attribute)) continue;
    const Ints values = List(part.attribute);
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] > 0) continue;
      return Fail(StrCat("expects window to have positive ", part.positive, " for ", i,
                         "-th window dimension, but got ", values[i], "."));
    }
  }
  return true;
}

bool Rules::CheckReduceWindow() {
  const size_t count = op.operand_count / 2;
  if (op.operand_count % 2 != 0 || count == 0) return Fail("requires the same number of inputs and init values");
  const Ints window = List("window_dimensions");
  std::vector<NodeId> inputs, inits;
  for (size_t i = 0; i < count; ++i) {
    inputs.push_back(operand(i));
    inits.push_back(operand(count + i));
    if (static_cast<int64_t>(window.size()) != rank(inputs[i])) {
      return Fail(StrCat("expects window-dimensions size == input rank, but got window-dimensions size: ",
                         window.size(), " and input: '", Text(inputs[i]), "' with rank = ", rank(inputs[i]), "."));
    }
  }
  return CheckWindow(window.size(), window, "base_dilations", "window_dilations") &&
         CheckReducer(0, inputs, inits, window) && CheckReducedElements();
}

bool Rules::CheckReducedElements() {
  // The region that reduces is the last one.
  const mlir::Block* const block = BlockOf(op.region_count - 1);
  if (block == nullptr) return true;
  const std::vector<NodeId> returned = ReturnedTypes(*block);
  // A collective operation reduces each of its operands with one region.
  const bool shared = returned.size() == 1;
  if (!shared && returned.size() != op.result_count)
    return Fail("expects a result for each value that the region returns");
  for (size_t i = 0; i < op.result_count; ++i) {
    const NodeId wanted = returned[shared ? 0 : i];
    if (!IsTensor(wanted) || !IsTensor(result(i)) || ElementsInfer(element(wanted), element(result(i)))) continue;
    return Fail(StrCat("expects result #", i, " to have the element type that the region returns, '",
                       Text(element(wanted)), "', but got '", Text(element(result(i))), "'"));
  }
  return true;
}

bool Rules::CheckSelectAndScatter() {
  const NodeId input = operand(0), source = operand(1), init = operand(2);
  const NodeId scalar_element = element(input);
  if (const mlir::BlockId id = m.block(m.regions_of(op)[0]); id.valid()) {
    const mlir::Block& block = m.blocks[id.value];
    if (block.argument_count != 2) {
      return Fail(StrCat("expects the select-region to take 2 parameters, but takes ", block.argument_count));
    }
    for (size_t i = 0; i < 2; ++i) {
      const NodeId type = m.type(m.argument(block, i));
      if (IsTensor(type) && CompatibleElements(element(type), scalar_element)) continue;
      return Fail(StrCat("expects the type of select-region's parameter at index ", i, " to be 'tensor<",
                         Text(scalar_element), ">', but got '", Text(type), "'"));
    }
    const mlir::Operation* last = block.last.valid() ? &m.op(block.last) : nullptr;
    if (last == nullptr || last->operand_count != 1) {
      return Fail(
          StrCat("expects select-region to return single value, but got: ", last == nullptr ? 0 : last->operand_count));
    }
    const NodeId type = m.type(m.operands_of(*last)[0]);
    if (!IsTensor(type) || !sizes(type).empty() || Text(element(type)) != "i1") {
      return Fail(StrCat("expects the return-type of select-region to be tensor<i1>, but got: '", Text(type), "'"));
    }
  }
  const Ints window = List("window_dimensions");
  if (static_cast<int64_t>(window.size()) != rank(input)) {
    return Fail(StrCat("expects window-dimensions size == operand rank, but got window-dimensions size: ",
                       window.size(), " and operand-type: '", Text(input), "' with rank = ", rank(input), "."));
  }
  if (!CheckWindow(static_cast<size_t>(rank(input)), window, "", "")) return false;
  if (!CheckReducer(1, {source}, {init}, {})) return false;
  // The source has one element for each window.
  const Ints strides = List("window_strides"), padding = List("padding");
  Ints expected;
  for (size_t i = 0; i < sizes(input).size(); ++i) {
    const int64_t size = sizes(input)[i];
    if (size == mlir::kDynamicSize) {
      expected.push_back(size);
      continue;
    }
    int64_t padded = size;
    for (size_t side = 0; side < 2 && !padding.empty(); ++side) {
      if (__builtin_add_overflow(padded, padding[2 * i + side], &padded)) {
        return Fail(StrCat("padding makes dimension ", i, " too large"));
      }
    }
    const int64_t extent = i < window.size() ? window[i] : 1, stride = i < strides.size() ? strides[i] : 1;
    expected.push_back(padded < extent ? 0 : (padded - extent) / stride + 1);
  }
  if (!ShapesAgree(expected, sizes(source)) || !CompatibleElements(element(source), scalar_element)) {
    std::string type = "tensor<";
    for (int64_t size : expected) type += size == mlir::kDynamicSize ? std::string("?x") : StrCat(size, "x");
    return Fail(StrCat("expects source-type to be '", type, Text(scalar_element), ">', but got'", Text(source), "'"));
  }
  return true;
}

}  // namespace hlokit::stablehlo
