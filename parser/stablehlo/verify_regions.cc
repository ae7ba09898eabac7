// SPDX-License-Identifier: Apache-2.0
// Rules of operations with regions: reductions, windows, scatter, loops.
#include <algorithm>

#include "parser/stablehlo/verify_rules.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

bool Rules::CheckReducer(size_t region, const std::vector<NodeId>& inputs, const std::vector<NodeId>& inits) {
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
        const auto part = [](std::string_view text, char begin, std::string_view end) {
          const size_t open = text.find(begin);
          if (open == std::string_view::npos) return std::string_view();
          text.remove_prefix(open + 1);
          return text.substr(0, text.find_first_of(end));
        };
        const std::string_view a = part(n.text(from), '<', ":<"), b = part(n.text(to), '<', ":<");
        return part(n.text(from), ':', ",:>") == part(n.text(to), ':', ",:>") &&
               std::pair(a.size(), a) <= std::pair(b.size(), b);
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
    if (rank(value) > rank(inputs[i])) {
      return Fail(StrCat("The rank of reduction-region's argument at index ", count + i,
                         " is expected to be <= ", rank(inputs[i]), ", got ", rank(value)));
    }
    // The sizes of the argument are those of some dimensions of the input, in order.
    size_t at = 0;
    for (int64_t size : sizes(value)) {
      while (at < sizes(inputs[i]).size() && !SizesAgree(sizes(inputs[i])[at], size)) ++at;
      if (at++ >= sizes(inputs[i]).size()) {
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
  return CheckReducer(0, inputs, inits);
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
    const bool dynamic = n.str(op.name) == "stablehlo.dynamic_conv";  // which StableHLO lets have more
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
  return CheckWindow(window.size(), window, "base_dilations", "window_dilations") && CheckReducer(0, inputs, inits);
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
  if (Has("window_dimensions") && static_cast<int64_t>(window.size()) != rank(input)) {
    return Fail(StrCat("expects window-dimensions size == operand rank, but got window-dimensions size: ",
                       window.size(), " and operand-type: '", Text(input), "' with rank = ", rank(input), "."));
  }
  if (!CheckWindow(static_cast<size_t>(rank(input)), window, "", "")) return false;
  if (!CheckReducer(1, {source}, {init})) return false;
  // The source has one element for each window.
  const Ints strides = List("window_strides"), padding = List("padding");
  Ints expected;
  for (size_t i = 0; i < sizes(input).size(); ++i) {
    const int64_t size = sizes(input)[i];
    if (size == mlir::kDynamicSize) {
      expected.push_back(size);
      continue;
    }
    const int64_t padded = size + (padding.empty() ? 0 : padding[2 * i] + padding[2 * i + 1]);
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

bool Rules::CheckScatter() {
  if (op.operand_count < 3 || op.operand_count % 2 == 0) return Fail("expects as many updates as inputs");
  const size_t count = op.operand_count / 2;
  const NodeId input = operand(0), indices = operand(count), updates = operand(count + 1);
  const NodeId numbers = m.attribute(op, "scatter_dimension_numbers");
  if (n.kind(numbers) != NodeKind::kFields) return true;
  for (size_t i = 1; i < count; ++i) {
    if (!ShapesAgree(sizes(operand(i)), sizes(input))) return Fail("Not all inputs have compatible shapes.");
    if (!ShapesAgree(sizes(operand(count + 1 + i)), sizes(updates)))
      return Fail("Not all updates have compatible shapes.");
  }
  const Ints window = Field(numbers, "update_window_dims"), inserted = Field(numbers, "inserted_window_dims"),
             batching = Field(numbers, "input_batching_dims"), map = Field(numbers, "scatter_dims_to_operand_dims"),
             index_batching = Field(numbers, "scatter_indices_batching_dims");
  const int64_t vector = n.IntegerValue(n.Entry(numbers, "index_vector_dim")).value_or(0);
  const auto in_range = [&](const Ints& list, std::string_view name, int64_t limit, std::string_view of) {
    for (int64_t d : list) {
      if (d >= 0 && d < limit) continue;
      return Fail(StrCat("Expects each element of ", name, " to be in range [0, rank-of('", of, "')) i.e. [0, ", limit,
                         "). got: ", d, "."));
    }
    return true;
  };
  const auto sorted = [&](const Ints& list, std::string_view name, bool ordered) {
    if (ordered && !std::is_sorted(list.begin(), list.end())) {
      return Fail(StrCat("Expects ", name, " to be sorted; got: [", ListText(list), "]."));
    }
    Ints copy = list;
    std::sort(copy.begin(), copy.end());
    if (std::adjacent_find(copy.begin(), copy.end()) == copy.end()) return true;
    return Fail(StrCat("Expects ", name, " to not repeat; got: [", ListText(list), "]."));
  };
  const auto disjoint = [&](const Ints& a, std::string_view a_name, const Ints& b, std::string_view b_name) {
    for (int64_t d : a) {
      if (std::find(b.begin(), b.end(), d) == b.end()) continue;
      return Fail(StrCat("has duplicated dimension from ", a_name, " and ", b_name, ": ", d));
    }
    return true;
  };
  if (vector < 0 || vector > rank(indices)) {
    return Fail(
        StrCat("expects scatter index leaf dimension to be within [0, rank(scatter_indices) + 1. rank(scatter_"
               "indices) is ",
               rank(indices), " and scatter index leaf dimension is ", vector, "."));
  }
  const int64_t matched = static_cast<int64_t>(window.size() + inserted.size() + batching.size());
  if (!sorted(window, "update_window_dims", true) || !sorted(inserted, "inserted_window_dims", true) ||
      !disjoint(inserted, "inserted_window_dims", batching, "input_batching_dims") ||
      !in_range(inserted, "inserted_window_dims", rank(input), "operand") ||
      !sorted(batching, "input_batching_dims", true) ||
      !in_range(batching, "input_batching_dims", rank(input), "operand")) {
    return false;
  }
  if (matched != rank(input)) {
    return Fail(
        StrCat("Expects rank-of operand to match size-of('update_window_dims') + size-of('inserted_window_dims') "
               "+ size-of('input_batching_dims') i.e. ",
               matched, " but got ", rank(input), "."));
  }
  const int64_t bound = vector < rank(indices) ? sizes(indices)[static_cast<size_t>(vector)] : 1;
  if (!SizesAgree(bound, static_cast<int64_t>(map.size()))) {
    return Fail(StrCat("Scatter op has ", map.size(),
                       " elements in scatter_dims_to_operand_dims and the bound of dimension index_vector_dim=", vector,
                       " of scatter_indices is ", bound, ". These two numbers must be equal."));
  }
  if (!disjoint(map, "scatter_dims_to_operand_dims", batching, "input_batching_dims") ||
      !in_range(map, "scatter_dims_to_operand_dims", rank(input), "operand") ||
      !sorted(map, "scatter_dims_to_operand_dims", false) ||
      !sorted(index_batching, "scatter_indices_batching_dims", false) ||
      !in_range(index_batching, "scatter_indices_batching_dims", rank(indices), "scatter_indices")) {
    return false;
  }
  if (std::find(index_batching.begin(), index_batching.end(), vector) != index_batching.end()) {
    return Fail(StrCat("expects scatter_indices_batching_dims not to include index_vector_dim ", vector, "."));
  }
  if (index_batching.size() != batching.size()) {
    return Fail("input_batching_dims and scatter_indices_batching_dims should have the same size");
  }
  const int64_t update_rank = rank(indices) - (vector < rank(indices) ? 1 : 0) + static_cast<int64_t>(window.size());
  if (rank(updates) != update_rank) {
    return Fail(
        StrCat("expects updates tensor must be of rank ", update_rank,
               " ( == rank-of('scatter_indices') - 1 + size-of('update_window_dims'), where 'scatter_indices' is "
               "expanded by a trailing 1 dimension if 'index_vector_dim' == rank-of('scatter_indices')), but got ",
               rank(updates), "."));
  }
  for (int64_t d : window) {
    if (d >= 0 && d < rank(updates)) continue;
    return Fail(StrCat("Expects each element of update_window_dims to be in range [0, rank-of('updates')) i.e. [0, ",
                       rank(updates), "). got: ", d, "."));
  }
  size_t at = 0;
  for (int64_t d = 0; d < rank(input); ++d) {
    if (std::find(inserted.begin(), inserted.end(), d) != inserted.end()) continue;
    if (std::find(batching.begin(), batching.end(), d) != batching.end()) continue;
    const int64_t size = sizes(updates)[static_cast<size_t>(window[at])], limit = sizes(input)[static_cast<size_t>(d)];
    if (size != mlir::kDynamicSize && limit != mlir::kDynamicSize && size > limit) {
      return Fail(
          StrCat("expects bounds of the window dimensions of updates to not exceed the bounds of the "
                 "corresponding dimensions of operand. For dimension ",
                 window[at], ", updates bound is ", size, ", operand bound is ", limit, "."));
    }
    ++at;
  }
  std::vector<NodeId> values, accumulators;
  for (size_t i = 0; i < count; ++i) {
    values.push_back(operand(count + 1 + i));
    accumulators.push_back(n.kind(operand(i)) == NodeKind::kTensorType ? operand(i) : NodeId());
  }
  // The accumulator of an element is a scalar of the input.
  std::vector<NodeId> scalars;
  for (NodeId type : accumulators) scalars.push_back(const_cast<mlir::NodeTable&>(n).Tensor({}, element(type)));
  return CheckReducer(0, values, scalars);
}

bool Rules::CheckWhile() {
  for (size_t r = 0; r < 2; ++r) {
    const mlir::BlockId id = m.block(m.regions_of(op)[r]);
    if (!id.valid()) return Fail("expects a non-empty region");
    const mlir::Block& block = m.blocks[id.value];
    const std::string_view which = r == 0 ? "condition" : "body";
    if (block.argument_count != op.operand_count) {
      return Fail(StrCat("expect operands to be compatible with ", which, " block arguments: got ", op.operand_count,
                         " operands and ", block.argument_count, " arguments"));
    }
    for (size_t i = 0; i < op.operand_count; ++i) {
      if (Compatible(operand(i), m.type(m.argument(block, i)))) continue;
      return Fail(StrCat("expect operands to be compatible with ", which, " block arguments but got '",
                         Text(operand(i)), "' vs '", Text(m.type(m.argument(block, i))), "'"));
    }
    const mlir::Operation* last = block.last.valid() ? &m.op(block.last) : nullptr;
    const size_t returned = last == nullptr ? 0 : last->operand_count;
    if (r == 0) {
      if (returned != 1) return Fail(StrCat("expect condition body returns a single value but got ", returned));
      const NodeId type = m.type(m.operands_of(*last)[0]);
      if (!IsTensor(type) || !sizes(type).empty() || Text(element(type)) != "i1") {
        return Fail(StrCat("expect condition block return a zero-ranked tensor of i1 but got '", Text(type), "'"));
      }
      continue;
    }
    if (returned != op.operand_count) return Fail("expect operands to be compatible with body block return types");
    for (size_t i = 0; i < returned; ++i) {
      if (Compatible(operand(i), m.type(m.operands_of(*last)[i]))) continue;
      return Fail("expect operands to be compatible with body block return types");
    }
  }
  return true;
}

}  // namespace hlokit::stablehlo
