// SPDX-License-Identifier: Apache-2.0
// Operations among several devices.
#include <utility>

#include "ir/core/str_cat.h"
#include "parser/stablehlo/import/converter.h"

namespace hlokit::stablehlo {

// XLA passes several operands through a tuple.
std::vector<InstructionId> Converter::TupledOperands(const Op& op) {
  std::vector<InstructionId> values = operands(op);
  if (values.size() < 2 || !options_.as_xla) return values;
  const InstructionId tuple = b().MakeTuple(values);
  for (size_t i = 0; i < values.size(); ++i) values[i] = PickElement(tuple, static_cast<int64_t>(i));
  return values;
}

absl::Status Converter::ConvertAllGather(const Op& op) {
  const int64_t dimension[] = {IntOf(op, "all_gather_dim")};
  for (size_t i = 0; i < op.result_count; ++i) {
    // The number of parts follows from the sizes.
    absl::StatusOr<Shape> shape = ResultShape(op, i);
    if (!shape.ok()) return shape.status();
    const bool known = shape->IsArray() && dimension[0] >= 0 && dimension[0] < shape->rank();
    if (known && shape->is_unbounded(dimension[0])) return ConvertNone(op);
  }
  Attrs attrs = {List(Attr::kDimensions, dimension),
                 {Attr::kUseGlobalDeviceIds, IntOf(op, "use_global_device_ids") != 0}};
  if (absl::Status status = AddGroups(op, &attrs); !status.ok()) return status;
  if (absl::Status status = AddChannel(op, &attrs); !status.ok()) return status;
  return EmitTuple(op, Opcode::kAllGather, TupledOperands(op), attrs);
}

absl::Status Converter::ConvertAllReduce(const Op& op) {
  Attrs attrs = {{Attr::kUseGlobalDeviceIds, IntOf(op, "use_global_device_ids") != 0},
                 Builder::Calls(Attr::kToApply, callee(0))};
  if (absl::Status status = AddGroups(op, &attrs); !status.ok()) return status;
  if (absl::Status status = AddChannel(op, &attrs); !status.ok()) return status;
  return EmitTuple(op, Opcode::kAllReduce, TupledOperands(op), attrs);
}

absl::Status Converter::ConvertReduceScatter(const Op& op) {
  const int64_t dimension[] = {IntOf(op, "scatter_dimension")};
  Attrs attrs = {List(Attr::kDimensions, dimension),
                 {Attr::kUseGlobalDeviceIds, IntOf(op, "use_global_device_ids") != 0},
                 Builder::Calls(Attr::kToApply, callee(0))};
  if (absl::Status status = AddGroups(op, &attrs); !status.ok()) return status;
  if (absl::Status status = AddChannel(op, &attrs); !status.ok()) return status;
  return Emit(op, Opcode::kReduceScatter, operands(op), attrs);
}

absl::Status Converter::ConvertAllToAll(const Op& op) {
  Attrs attrs;
  if (absl::Status status = AddGroups(op, &attrs); !status.ok()) return status;
  if (absl::Status status = AddChannel(op, &attrs); !status.ok()) return status;
  if (op.operand_count != 1) return EmitTuple(op, Opcode::kAllToAll, operands(op), attrs);
  return EmitAllToAll(op, std::move(attrs), IntOf(op, "split_dimension"), IntOf(op, "concat_dimension"),
                      IntOf(op, "split_count", 1));
}

absl::Status Converter::EmitAllToAll(const Op& op, Attrs attrs, int64_t split, int64_t concat, int64_t count) {
  const Shape shape = shape_of(operand(op, 0));
  const int64_t dimension[] = {split};
  attrs.push_back(List(Attr::kDimensions, dimension));
  if (split == concat) return Emit(op, Opcode::kAllToAll, operands(op), attrs);
  if (!shape.IsArray() || split < 0 || split >= shape.rank() || concat < 0 || concat >= shape.rank() || count <= 0 ||
      shape.dim(split) % count != 0) {
    return Error(op, "has dimensions out of range");
  }
  // The received parts are split off, and moved in front of the dimension that they are concatenated in.
  const Result exchanged = b().Add(Opcode::kAllToAll, operands(op), attrs);
  if (!exchanged.ok()) return SetResult(op, exchanged);
  Ints sizes, permutation;
  for (int64_t i = 0; i < shape.rank(); ++i) {
    if (i != split) {
      sizes.push_back(shape.dim(i));
      continue;
    }
    sizes.push_back(count);
    sizes.push_back(shape.dim(i) / count);
  }
  const Result parts = b().Reshape(*exchanged, sizes);
  if (!parts.ok()) return SetResult(op, parts);
  for (int64_t i = 0; i < shape.rank(); ++i) {
    const int64_t after_split = i > split ? 1 : 0;
    if (i == concat) permutation.push_back(split);
    permutation.push_back(i == split ? split + 1 : i + after_split);
  }
  const Result moved = b().Transpose(*parts, permutation);
  if (!moved.ok()) return SetResult(op, moved);
  return Emit(op, Opcode::kReshape, {*moved});
}

// Each operand is the part for one device of the group.
absl::Status Converter::ConvertAllToAllOfTuple(const Op& op) {
  Attrs attrs;
  if (absl::Status status = AddGroups(op, &attrs); !status.ok()) return status;
  if (absl::Status status = AddChannel(op, &attrs); !status.ok()) return status;
  absl::StatusOr<Shape> shape = ResultsShape(op);
  if (!shape.ok()) return shape.status();
  if (op.result_count == 1) shape = shapes().Tuple({&*shape, 1});
  return SetResults(op, b().Add(Opcode::kAllToAll, operands(op), attrs, *shape), /*always_tuple=*/true);
}

absl::Status Converter::ConvertDomain(const Op& op) {
  if (EnumOf(op, "kind") != "sharding") return Error(op, "has a kind that is no sharding");
  Ints domain = {context().strings.Intern("sharding").value};
  for (std::string_view side : {"entry_metadata", "exit_metadata"}) {
    absl::StatusOr<ListId> sharding = ReadShardingText(StringOf(op, side));
    if (!sharding.ok()) return Error(op, std::string(sharding.status().message()));
    domain.push_back(sharding->value);
  }
  return Emit(op, Opcode::kDomain, operands(op), {List(Attr::kDomain, domain)});
}

absl::Status Converter::ConvertCollectivePermute(const Op& op) {
  absl::StatusOr<Ints> pairs = IntsOf(op, "source_target_pairs");
  if (!pairs.ok()) return pairs.status();
  Ints list;
  for (size_t i = 0; i + 1 < pairs->size(); i += 2) list.insert(list.end(), {2, (*pairs)[i], (*pairs)[i + 1]});
  Attrs attrs = {List(Attr::kSourceTargetPairs, list)};
  if (absl::Status status = AddChannel(op, &attrs); !status.ok()) return status;
  return Emit(op, Opcode::kCollectivePermute, operands(op), attrs);
}

absl::Status Converter::ConvertCollectiveBroadcast(const Op& op) {
  Attrs attrs = {{Attr::kHasDynamicRoot, IntOf(op, "has_dynamic_root") != 0}};
  if (absl::Status status = AddGroups(op, &attrs); !status.ok()) return status;
  if (absl::Status status = AddChannel(op, &attrs); !status.ok()) return status;
  return EmitTuple(op, Opcode::kCollectiveBroadcast, operands(op), attrs);
}

absl::Status Converter::ConvertCollectiveReduce(const Op& op) {
  Attrs attrs = {{Attr::kUseGlobalDeviceIds, IntOf(op, "use_global_device_ids") != 0},
                 {Attr::kHasDynamicRoot, IntOf(op, "has_dynamic_root") != 0},
                 Builder::Calls(Attr::kToApply, callee(0))};
  if (absl::Status status = AddGroups(op, &attrs); !status.ok()) return status;
  if (absl::Status status = AddChannel(op, &attrs); !status.ok()) return status;
  return EmitTuple(op, Opcode::kCollectiveReduce, operands(op), attrs);
}

absl::Status Converter::ConvertCrossReplicaSum(const Op& op) {
  const Shape shape = shape_of(operand(op, 0));
  if (!shape.IsArray()) return ConvertNone(op);
  Attrs attrs = {Builder::Calls(Attr::kToApply, b().MakeReducer(Opcode::kAdd, shape.element_type()))};
  if (absl::Status status = AddGroups(op, &attrs); !status.ok()) return status;
  return Emit(op, Opcode::kAllReduce, operands(op), attrs);
}

}  // namespace hlokit::stablehlo
