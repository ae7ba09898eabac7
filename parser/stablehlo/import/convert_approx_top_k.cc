// SPDX-License-Identifier: Apache-2.0
// The custom call ApproxTopK: the greatest elements of a dimension by a comparison, of which some may be missed. XLA
// makes a call of PartialReduce, which keeps one of several elements, and sorts what is left; or it sorts everything.
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "ir/core/str_cat.h"
#include "parser/stablehlo/backend_config.h"
#include "parser/stablehlo/import/converter.h"
#include "parser/stablehlo/kept_attributes.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

namespace {

int64_t CeilOfRatio(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
int64_t FloorOfLog2(int64_t n) { return 63 - __builtin_clzll(static_cast<uint64_t>(n)); }
int64_t CeilOfLog2(int64_t n) { return n <= 1 ? 0 : FloorOfLog2(n - 1) + 1; }

// How many elements PartialReduce keeps: so many that the expected recall is reached, in whole tiles, as XLA has it
// (approx_topk_shape).
int64_t KeptElements(int64_t size, int64_t rank, int64_t k, double recall, int64_t size_override) {
  const int64_t tile = rank == 1 ? 1024 : 128;
  if (size <= tile) return size;
  if (k == 1) return tile;
  const int64_t logical = size_override >= 0 ? size_override : size;
  const double wanted = (1.0 - static_cast<double>(k)) / std::log(recall);
  const int64_t least = wanted >= 0 && wanted < static_cast<double>(logical) ? static_cast<int64_t>(wanted) : logical;
  const int64_t kept = std::max<int64_t>(1, std::min(std::max(least, tile), logical));
  const int64_t log2 =
      std::min(FloorOfLog2(std::max<int64_t>(1, CeilOfRatio(logical, kept))), CeilOfLog2(CeilOfRatio(size, tile)));
  if (log2 == 0) return size;
  return CeilOfRatio(CeilOfRatio(size, tile), int64_t{1} << log2) * tile;
}

}  // namespace

absl::StatusOr<Converter::ApproxTopK> Converter::ReadApproxTopK(const Op& op) const {
  const NodeId config = BackendConfigOf(program_, op);
  if (!config.valid() || nodes().kind(config) != NodeKind::kDictionary) {
    return Invalid("Missing backend_config attribute");
  }
  for (const mlir::Attribute& attribute : program_.attributes_of(op)) {
    const std::string_view name = nodes().str(attribute.name);
    static constexpr std::string_view kAllowed[] = {"call_target_name",         "backend_config",  "api_version",
                                                    "called_computations",      "has_side_effect", "mhlo.sharding",
                                                    "mhlo.frontend_attributes", kBackendConfig,    "sdy.sharding"};
    if (std::find(std::begin(kAllowed), std::end(kAllowed), name) == std::end(kAllowed)) {
      return Invalid(StrCat(name, " is not a supported attribute for ApproxTopK"));
    }
  }
  struct Part {
    std::string_view name;
    NodeKind kind;
    std::string_view type;
    bool required;
  };
  static constexpr Part kParts[] = {{"top_k", NodeKind::kInteger, "i64", true},
                                    {"reduction_dim", NodeKind::kInteger, "i64", true},
                                    {"recall_target", NodeKind::kFloat, "f32", true},
                                    {"aggregate_to_topk", NodeKind::kInteger, "bool", true},
                                    {"reduction_input_size_override", NodeKind::kInteger, "i64", true},
                                    {"is_fallback", NodeKind::kInteger, "bool", false}};
  for (const Part& part : kParts) {
    const NodeId value = nodes().Entry(config, part.name);
    if (!value.valid() && !part.required) continue;
    if (!value.valid()) return Invalid(StrCat("Missing ", part.name, " attribute in backend_config"));
    const std::string type = nodes().kind(value) == part.kind ? mlir::ToText(nodes(), nodes().child(value, 0)) : "";
    if (type == part.type || (part.type == "bool" && type == "i1")) continue;
    return Invalid(StrCat(part.name, " attribute in backend_config must be of ", part.type, " type"));
  }
  const auto number = [&](std::string_view name) {
    return nodes().IntegerValue(nodes().Entry(config, name)).value_or(0);
  };
  ApproxTopK call;
  call.k = number("top_k");
  call.dimension = number("reduction_dim");
  call.size_override = number("reduction_input_size_override");
  call.aggregate = number("aggregate_to_topk") != 0;
  call.fallback = number("is_fallback") != 0;
  call.recall = std::bit_cast<double>(nodes().ints(nodes().Entry(config, "recall_target"))[0]);
  return call;
}

absl::Status Converter::CheckApproxTopKShapes(const Op& op, const ApproxTopK& call,
                                              absl::Span<const InstructionId> inputs, int64_t returned) {
  const Shape first = shape_of(inputs[0]);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape input = shape_of(inputs[i]);
    absl::StatusOr<Shape> result = ResultShape(op, i);
    if (!result.ok()) return result.status();
    if (!input.IsArray() ||
        !std::equal(input.dims().begin(), input.dims().end(), first.dims().begin(), first.dims().end())) {
      return Invalid(StrCat("input shape mismatch at position ", i));
    }
    if (!result->IsArray() || result->element_type() != input.element_type()) {
      return Invalid(StrCat("result element type mismatch at position ", i));
    }
    if (result->rank() != first.rank()) return Invalid(StrCat("result shape mismatch at position ", i));
    for (int64_t d = 0; d < first.rank(); ++d) {
      if (d != call.dimension && result->dim(d) != first.dim(d)) {
        return Invalid(StrCat("result shape mismatch at position ", i, ", index ", d));
      }
    }
    if (result->dim(call.dimension) != returned) {
      return Invalid(StrCat("ApproxTopK aggregates to k=", returned, ", but got ", result->dim(call.dimension)));
    }
  }
  return absl::OkStatus();
}

absl::Status Converter::ConvertApproxTopK(const Op& op) {
  const absl::StatusOr<ApproxTopK> call = ReadApproxTopK(op);
  if (!call.ok()) return call.status();
  const NodeId called = Attribute(op, "called_computations");
  if (!called.valid() || nodes().kind(called) != NodeKind::kArray || nodes().child_count(called) != 1) {
    return Invalid("ApproxTopK takes exactly 1 called_computation.");
  }
  const auto function = functions_.find(std::string(nodes().text(nodes().child(called, 0))));
  if (function == functions_.end()) return Error(op, "calls a function that is not defined");
  const ComputationId comparison = computations_.at(function->second.value);
  if (op.operand_count == 0 || op.operand_count % 2 != 0) {
    return Invalid("ApproxTopK takes an even number of operands.");
  }
  const size_t count = op.operand_count / 2;
  if (op.result_count != count) return Invalid("num_results does not match num_inputs");
  const std::vector<InstructionId> inputs = operands(op, 0, count);
  const Shape first = shape_of(inputs[0]);
  if (!first.IsArray() || call->dimension < 0 || call->dimension >= first.rank()) {
    return Invalid("reduction_dim out of range");
  }
  const int64_t size = first.dim(call->dimension);
  if (call->k < 1 || call->k > size) return Invalid("top_k is out of range");
  if (!(call->recall > 0.0 && call->recall <= 1.0)) return Invalid("recall_target is not in (0, 1]");
  const int64_t kept = KeptElements(size, first.rank(), call->k, call->recall, call->size_override);
  const int64_t returned = call->aggregate ? call->k : kept;
  if (absl::Status status = CheckApproxTopKShapes(op, *call, inputs, returned); !status.ok()) return status;
  return MakeApproxTopK(op, *call, comparison, inputs, call->fallback ? size : kept, returned);
}

absl::Status Converter::MakeApproxTopK(const Op& op, const ApproxTopK& call, ComputationId comparison,
                                       absl::Span<const InstructionId> inputs, int64_t kept, int64_t returned) {
  const size_t count = inputs.size();
  const int64_t dimension = call.dimension;
  const Shape first = shape_of(inputs[0]);
  const auto sized = [&](Shape shape, int64_t size) {
    Ints sizes(shape.dims().begin(), shape.dims().end());
    sizes[static_cast<size_t>(dimension)] = size;
    return shapes().Array(shape.element_type(), sizes);
  };
  const auto tuple_of = [&](int64_t size) {
    std::vector<Shape> elements;
    for (InstructionId id : inputs) elements.push_back(sized(shape_of(id), size));
    return elements.size() == 1 ? elements[0] : shapes().Tuple(elements);
  };
  std::vector<InstructionId> values(inputs.begin(), inputs.end());
  int64_t size = first.dim(dimension);
  const auto split = [&](InstructionId made) {
    for (size_t i = 0; i < count; ++i) values[i] = count == 1 ? made : Element(made, static_cast<int64_t>(i));
  };
  if (kept < size) {
    const ComputationId callees[] = {comparison};
    const Result partial =
        b().Add(Opcode::kCustomCall, operands(op),
                {String(Attr::kCustomCallTarget, "PartialReduce"), b().CallsEach(Attr::kCalledComputations, callees)},
                tuple_of(kept));
    if (!partial.ok()) return SetResult(op, partial);
    split(*partial);
    size = kept;
  }
  if (call.aggregate || call.fallback) {
    const int64_t sorted[] = {dimension};
    const Result sort =
        b().Add(Opcode::kSort, values, {List(Attr::kDimensions, sorted), Builder::Calls(Attr::kToApply, comparison)},
                tuple_of(size));
    if (!sort.ok()) return SetResult(op, sort);
    split(*sort);
  }
  for (size_t i = 0; i < count; ++i) {
    Result value = values[i];
    if (size != returned) {
      Ints ranges;
      for (int64_t d = 0; d < first.rank(); ++d) {
        ranges.insert(ranges.end(), {0, d == dimension ? returned : first.dim(d), 1});
      }
      value = b().Add(Opcode::kSlice, {values[i]}, {List(Attr::kSlice, ranges)}, sized(shape_of(values[i]), returned));
    }
    if (!value.ok()) return SetResult(op, value, i);
    values[i] = *value;
  }
  if (count == 1) return SetResult(op, values[0]);
  const InstructionId tuple = b().MakeTuple(values);
  if (absl::Status status = Annotate(op, tuple); !status.ok()) return status;
  for (size_t i = 0; i < count; ++i) Bind(program_.result(op, i), PickElement(tuple, static_cast<int64_t>(i)));
  return absl::OkStatus();
}

}  // namespace hlokit::stablehlo
