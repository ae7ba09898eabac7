// SPDX-License-Identifier: Apache-2.0
// Operations that take sizes as operands become those that have them as attributes.
#include <algorithm>
#include <cstring>
#include <utility>

#include "parser/stablehlo/refine/refiner.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;
using mlir::OpKind;

void Refiner::SetKind(RefinedOp* op, OpKind kind, size_t operands) {
  op->definition = &mlir::DefinitionOf(kind);
  op->name = n().strings().Intern(op->definition->name);
  op->operands.resize(std::min(operands, op->operands.size()));
}

void Refiner::DropAttribute(RefinedOp* op, std::string_view name) {
  std::vector<mlir::Attribute>& list = op->attributes;
  list.erase(std::remove_if(list.begin(), list.end(), [&](const auto& a) { return n().str(a.name) == name; }),
             list.end());
}

void Refiner::SetAttribute(RefinedOp* op, std::string_view name, NodeId value) {
  DropAttribute(op, name);
  op->attributes.push_back({n().strings().Intern(name), value, true});
  std::sort(op->attributes.begin(), op->attributes.end(),
            [&](const auto& a, const auto& b) { return n().str(a.name) < n().str(b.name); });
}

bool Refiner::ResultsAreStatic(const RefinedOp& op) const {
  return std::all_of(op.results.begin(), op.results.end(), [&](uint32_t value) {
    const NodeId type = values_[value].type;
    if (n().kind(type) != NodeKind::kTensorType) return true;
    const absl::Span<const int64_t> sizes = n().ints(type);
    return std::none_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; });
  });
}

NodeId Refiner::Elements(absl::Span<const int64_t> values, absl::Span<const int64_t> sizes) {
  const NodeId type = n().Tensor(sizes, n().IntegerType(64));
  const size_t bytes = values.size() * sizeof(int64_t);
  auto* const data = static_cast<std::byte*>(n().arena().Allocate(bytes, alignof(int64_t)));
  if (bytes != 0) std::memcpy(data, values.data(), bytes);
  return n().MakeBlob(type, data, bytes, false);
}

NodeId Refiner::ConstantElements(const Ints& values, NodeId type) {
  const std::optional<ElementType> element = n().HloElementType(n().child(type, 0));
  const auto size = static_cast<size_t>(element ? BytesOf(*element) : 8);
  const bool splat = std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; });
  const size_t count = splat && !values.empty() ? 1 : values.size();
  auto* const data = static_cast<std::byte*>(n().arena().Allocate(count * size, alignof(int64_t)));
  for (size_t i = 0; i < count; ++i) std::memcpy(data + i * size, &values[i], size);  // little-endian
  return n().MakeBlob(type, data, count * size, splat && !values.empty());
}

// Only operands before the shape operands remain.
void Refiner::DropShapeOperands(RefinedOp* op) {
  const std::optional<Ints> shapes = n().Integers(Attribute(*op, "indices_of_shape_operands"));
  if (!shapes || !ResultsAreStatic(*op)) return;
  std::vector<uint32_t> kept;
  for (size_t i = 0; i < op->operands.size(); ++i) {
    const bool shape = std::find(shapes->begin(), shapes->end(), static_cast<int64_t>(i)) != shapes->end();
    if (!shape) kept.push_back(op->operands[i]);
  }
  const NodeId layouts = Attribute(*op, "operand_layouts");
  if (layouts.valid() && n().kind(layouts) == NodeKind::kArray && n().child_count(layouts) == op->operands.size()) {
    std::vector<NodeId> list;
    for (size_t i = 0; i < op->operands.size(); ++i) {
      const bool shape = std::find(shapes->begin(), shapes->end(), static_cast<int64_t>(i)) != shapes->end();
      if (!shape) list.push_back(n().child(layouts, i));
    }
    SetAttribute(op, "operand_layouts", n().Make(NodeKind::kArray, "", {}, list));
  }
  op->operands = std::move(kept);
  DropAttribute(op, "indices_of_shape_operands");
}

// custom_call @stablehlo.dynamic_reduce_window(inputs, initial values, window, strides, base dilations, window
// dilations, padding), with the function that combines as its called computation.
void Refiner::CanonicalizeReduceWindow(RefinedOp* op) {
  const size_t count = op->operands.size();
  const NodeId called = Attribute(*op, "called_computations");
  if (count < 7 || !called.valid() || n().kind(called) != NodeKind::kArray || n().child_count(called) != 1) return;
  for (size_t i = count - 5; i < count; ++i) {
    if (!ConstantOf(*op, i)) return;
  }
  const Ints padding = *ConstantOf(*op, count - 1);
  const std::pair<std::string_view, size_t> lists[] = {{"window_dimensions", count - 5},
                                                       {"window_strides", count - 4},
                                                       {"base_dilations", count - 3},
                                                       {"window_dilations", count - 2}};
  RefinedOp made = std::move(*op);
  *op = RefinedOp();
  op->location = made.location;
  op->range = made.range;
  op->results = std::move(made.results);
  op->operands = made.operands;
  SetKind(op, OpKind::kStablehloReduceWindow, count - 5);
  for (const auto& [name, operand] : lists) {
    SetAttribute(op, name, n().DenseArray(*values_[made.operands[operand]].constant, 64));
  }
  const int64_t sizes[] = {static_cast<int64_t>(padding.size() / 2), 2};
  SetAttribute(op, "padding", Elements(padding, sizes));
  // The body calls the function.
  auto body = std::make_unique<RefinedRegion>();
  RefinedOp call;
  call.location = made.location;
  call.range = made.range;
  SetKind(&call, OpKind::kFuncCall, 0);
  for (int pass = 0; pass < 2; ++pass) {
    for (uint32_t result : op->results) {
      const NodeId scalar = n().Tensor({}, n().child(values_[result].type, 0));
      body->arguments.push_back(NewValue(scalar, made.location));
      call.operands.push_back(body->arguments.back());
      if (pass == 0) call.results.push_back(NewValue(scalar));
    }
  }
  SetAttribute(&call, "callee", n().child(called, 0));
  RefinedOp end;
  end.location = made.location;
  end.range = made.range;
  SetKind(&end, OpKind::kStablehloReturn, 0);
  end.operands = call.results;
  body->operations.push_back(std::move(call));
  body->operations.push_back(std::move(end));
  op->regions.push_back(std::move(body));
}

void Refiner::CanonicalizeCustomCall(RefinedOp* op) {
  const NodeId name = Attribute(*op, "call_target_name");
  const std::string_view target = name.valid() && n().kind(name) == NodeKind::kString ? n().text(name) : "";
  if (target == "stablehlo.dynamic_reduce_window") return CanonicalizeReduceWindow(op);
  if (target == "stablehlo.dynamic_rng_bit_generator" && ResultsAreStatic(*op)) {
    const NodeId algorithm = Attribute(*op, "rng_algorithm");
    if (!algorithm.valid()) return;
    SetKind(op, OpKind::kStablehloRngBitGenerator, 1);
    op->attributes.clear();
    return SetAttribute(op, "rng_algorithm", algorithm);
  }
  if (target == "stablehlo.dynamic_top_k" && op->operands.size() == 2 && ConstantOf(*op, 1)) {
    const Ints k = *ConstantOf(*op, 1);
    if (k.size() != 1 || !ResultsAreStatic(*op)) return;
    SetKind(op, OpKind::kChloTopK, 1);
    op->attributes.clear();
    return SetAttribute(op, "k", n().Integer(k[0], n().IntegerType(64)));
  }
  DropShapeOperands(op);
}

void Refiner::CanonicalizeSlice(RefinedOp* op, RefinedRegion* out) {
  const std::optional<Ints>& strides = ConstantOf(*op, 3);
  const bool dense = strides && std::all_of(strides->begin(), strides->end(), [](int64_t s) { return s == 1; });
  if (!dense || !ResultsAreStatic(*op)) return;
  const uint32_t start = op->operands[1];
  const NodeId element = n().child(values_[start].type, 0);
  const auto add = [&](OpKind kind, uint32_t operand, NodeId type) {
    RefinedOp made;
    made.location = op->location;
    made.range = op->range;
    SetKind(&made, kind, 0);
    made.operands = {operand};
    made.results = {NewValue(type)};
    out->operations.push_back(std::move(made));
    return out->operations.back().results[0];
  };
  const absl::Span<const int64_t> result = n().ints(values_[op->results[0]].type);
  const Ints sizes(result.begin(), result.end());
  SetKind(op, OpKind::kStablehloDynamicSlice, 1);
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
    const int64_t one[] = {1}, limit[] = {d + 1}, begin[] = {d};
    const uint32_t part = add(OpKind::kStablehloSlice, start, n().Tensor(one, element));
    SetAttribute(&out->operations.back(), "start_indices", n().DenseArray(begin, 64));
    SetAttribute(&out->operations.back(), "limit_indices", n().DenseArray(limit, 64));
    SetAttribute(&out->operations.back(), "strides", n().DenseArray(one, 64));
    op->operands.push_back(add(OpKind::kStablehloReshape, part, n().Tensor({}, element)));
  }
  SetAttribute(op, "slice_sizes", n().DenseArray(sizes, 64));
}

void Refiner::Canonicalize(RefinedOp* op, RefinedRegion* out) {
  const auto known = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (i >= op->operands.size() || !ConstantOf(*op, i)) return false;
    }
    return true;
  };
  const auto list = [&](size_t operand) { return n().DenseArray(*ConstantOf(*op, operand), 64); };
  switch (op->kind()) {
    case OpKind::kStablehloDynamicBroadcastInDim:
      if (!ResultsAreStatic(*op)) return;
      DropAttribute(op, "known_expanding_dimensions");
      DropAttribute(op, "known_nonexpanding_dimensions");
      return SetKind(op, OpKind::kStablehloBroadcastInDim, 1);
    case OpKind::kStablehloDynamicIota:
      if (ResultsAreStatic(*op)) SetKind(op, OpKind::kStablehloIota, 0);
      return;
    case OpKind::kStablehloDynamicReshape:
      if (ResultsAreStatic(*op)) SetKind(op, OpKind::kStablehloReshape, 1);
      return;
    case OpKind::kStablehloDynamicPad:
      if (!known(2, 5)) return;
      SetAttribute(op, "edge_padding_low", list(2));
      SetAttribute(op, "edge_padding_high", list(3));
      SetAttribute(op, "interior_padding", list(4));
      return SetKind(op, OpKind::kStablehloPad, 2);
    case OpKind::kStablehloRealDynamicSlice:
      if (!known(1, 4)) return CanonicalizeSlice(op, out);
      SetAttribute(op, "start_indices", list(1));
      SetAttribute(op, "limit_indices", list(2));
      SetAttribute(op, "strides", list(3));
      return SetKind(op, OpKind::kStablehloSlice, 1);
    case OpKind::kStablehloDynamicGather:
      if (!known(2, 3)) return;
      SetAttribute(op, "slice_sizes", list(2));
      return SetKind(op, OpKind::kStablehloGather, 2);
    case OpKind::kStablehloDynamicConv: {
      if (!known(2, 3)) return;
      const Ints padding = *ConstantOf(*op, 2);
      const int64_t sizes[] = {static_cast<int64_t>(padding.size() / 2), 2};
      SetAttribute(op, "padding", Elements(padding, sizes));
      return SetKind(op, OpKind::kStablehloConvolution, 2);
    }
    case OpKind::kStablehloCustomCall:
      return CanonicalizeCustomCall(op);
    default:
      return;
  }
}

}  // namespace hlokit::stablehlo
