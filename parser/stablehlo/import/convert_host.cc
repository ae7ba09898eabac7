// SPDX-License-Identifier: Apache-2.0
// Transfers to and from the host, and custom calls.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "ir/sharding/sharding.h"
#include "parser/stablehlo/backend_config.h"
#include "parser/stablehlo/import/converter.h"
#include "parser/stablehlo/kept_attributes.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

absl::Status Converter::ConvertInfeed(const Op& op) {
  if (op.result_count == 0) return Error(op, "has no token among its results");
  std::vector<Shape> data;
  for (size_t i = 0; i + 1 < op.result_count; ++i) {
    absl::StatusOr<Shape> shape = ResultShape(op, i);
    if (!shape.ok()) return shape.status();
    const NodeId layouts = Attribute(op, "layout");
    if (layouts.valid() && nodes().kind(layouts) == NodeKind::kArray && i < nodes().child_count(layouts)) {
      const std::optional<Ints> order = nodes().Integers(nodes().child(layouts, i));
      Ints sorted = order.value_or(Ints()), range;
      std::sort(sorted.begin(), sorted.end());
      for (int64_t d = 0; shape->IsArray() && d < shape->rank(); ++d) range.push_back(d);
      if (order && shape->IsArray() && !range.empty() && sorted == range) {
        *shape = shapes().WithLayout(*shape, shapes().Layout(*order));
      }
    }
    data.push_back(*shape);
  }
  const bool one = data.size() == 1 && KeptOpcode(op) == Opcode::kInfeed;  // an array, not a tuple of one
  const Shape elements[] = {one ? data[0] : shapes().Tuple(data), shapes().Token()};
  const Result infeed = b().Add(Opcode::kInfeed, operands(op),
                                {String(Attr::kInfeedConfig, StringOf(op, "infeed_config"))}, shapes().Tuple(elements));
  if (!infeed.ok()) return SetResult(op, infeed);
  if (absl::Status status = Annotate(op, *infeed); !status.ok()) return status;
  const InstructionId tuple = data.empty() ? InstructionId() : Element(*infeed, 0);
  for (size_t i = 0; i < data.size(); ++i) {
    Bind(program_.result(op, i), one ? tuple : Element(tuple, static_cast<int64_t>(i)));
  }
  Bind(program_.result(op, data.size()), Element(*infeed, 1));
  return absl::OkStatus();
}

absl::Status Converter::ConvertOutfeed(const Op& op) {
  if (op.operand_count == 0) return Error(op, "has no token");
  const std::vector<InstructionId> data = operands(op, 0, op.operand_count - 1);
  const bool one = data.size() == 1 && KeptOpcode(op) == Opcode::kOutfeed;
  const InstructionId tuple = one ? data[0] : MakeShardedTuple(data);
  return Emit(op, Opcode::kOutfeed, {tuple, operand(op, op.operand_count - 1)},
              {{Attr::kOutfeedShape, shape_of(tuple).id().value},
               String(Attr::kOutfeedConfig, StringOf(op, "outfeed_config"))});
}

// Pairs of devices travel as a frontend attribute of all parts of the transfer.
absl::Status Converter::AnnotateTransfer(const Op& op, InstructionId id) {
  const NodeId pairs = Attribute(op, "source_target_pairs");
  if (pairs.valid()) {
    const std::optional<Ints> list = nodes().Integers(pairs);
    if (!list) return Error(op, "has source_target_pairs that are not integers");
    std::string text = "{";
    for (size_t i = 0; i + 1 < list->size(); i += 2) {
      StrAppend(&text, i == 0 ? "{" : ",{", (*list)[i], ",", (*list)[i + 1], "}");
    }
    AddFrontend(id, "_xla_send_recv_source_target_pairs", text + "}");
  }
  if (absl::Status status = Annotate(op, id); !status.ok()) return status;
  // XLA says the shardings of the start: of the data, the state of the transfer and the token. The done has no state.
  const ListId sharding = ShardingOf(id);
  if (!sharding.valid() || !IsTupleSharding(context(), sharding)) return absl::OkStatus();
  std::vector<ListId> leaves = LeavesOf(op);
  const auto wanted = static_cast<size_t>(shape_of(id).leaf_count());
  if (leaves.size() == wanted + 1) {
    leaves.erase(leaves.end() - 2);
  } else if (leaves.size() + 1 == wanted) {
    leaves.push_back(leaves.back());
  } else if (wanted == 1 && !leaves.empty()) {
    leaves = {leaves.back()};  // the token of a send
  } else {
    return absl::OkStatus();
  }
  const ListId all = wanted == 1 ? leaves[0] : EncodeTupleSharding(&context(), leaves);
  module_->SetAttr(id, Attr::kSharding, NormalizeForShape(&context(), all, shape_of(id)).value);
  return absl::OkStatus();
}

absl::Status Converter::ConvertSend(const Op& op) {
  if (op.operand_count == 0) return Error(op, "has no token");
  const std::vector<InstructionId> data = operands(op, 0, op.operand_count - 1);
  const InstructionId value = data.size() == 1 ? data[0] : b().MakeTuple(data);
  const InstructionId token = operand(op, op.operand_count - 1);
  Attrs attrs = {{Attr::kIsHostTransfer, IntOf(op, "is_host_transfer") != 0}};
  if (absl::Status status = AddChannel(op, &attrs); !status.ok()) return status;
  const Shape elements[] = {shape_of(value), shapes().Scalar(ElementType::kU32), shapes().Token()};
  const Result send = b().Add(Opcode::kSend, {value, token}, attrs, shapes().Tuple(elements));
  if (!send.ok()) return SetResult(op, send);
  if (absl::Status status = AnnotateTransfer(op, *send); !status.ok()) return status;
  const Result done = Make(op, Opcode::kSendDone, {*send}, attrs);
  if (!done.ok()) return SetResult(op, done);
  if (absl::Status status = AnnotateTransfer(op, *done); !status.ok()) return status;
  return SetResult(op, done);
}

absl::Status Converter::ConvertRecv(const Op& op) {
  if (op.result_count == 0) return Error(op, "has no token among its results");
  std::vector<Shape> data;
  for (size_t i = 0; i + 1 < op.result_count; ++i) {
    absl::StatusOr<Shape> shape = ResultShape(op, i);
    if (!shape.ok()) return shape.status();
    data.push_back(*shape);
  }
  const Shape value = data.size() == 1 ? data[0] : shapes().Tuple(data);
  Attrs attrs = {{Attr::kIsHostTransfer, IntOf(op, "is_host_transfer") != 0}};
  if (absl::Status status = AddChannel(op, &attrs); !status.ok()) return status;
  const Shape started[] = {value, shapes().Scalar(ElementType::kU32), shapes().Token()};
  const Shape finished[] = {value, shapes().Token()};
  const Result recv = b().Add(Opcode::kRecv, operands(op), attrs, shapes().Tuple(started));
  if (!recv.ok()) return SetResult(op, recv);
  if (absl::Status status = AnnotateTransfer(op, *recv); !status.ok()) return status;
  const Result done = b().Add(Opcode::kRecvDone, {*recv}, attrs, shapes().Tuple(finished));
  if (!done.ok()) return SetResult(op, done);
  if (absl::Status status = AnnotateTransfer(op, *done); !status.ok()) return status;
  if (data.size() == 1) {
    Bind(program_.result(op, 0), Element(*done, 0));
  } else if (data.empty()) {
    if (options_.as_xla) Element(*done, 0);
  } else {
    const InstructionId tuple = Element(*done, 0);
    for (size_t i = 0; i < data.size(); ++i) {
      Bind(program_.result(op, i), Element(tuple, static_cast<int64_t>(i)));
    }
  }
  Bind(program_.result(op, data.size()), Element(*done, 1));
  return absl::OkStatus();
}

// The devices of a collective operation that travels as a custom call: {channel_id = 1 : i64, replica_groups = ...}.
absl::Status Converter::ConvertRaggedAllToAll(const Op& op) {
  const NodeId config = BackendConfigOf(program_, op);
  const std::optional<Ints> list = nodes().Integers(nodes().Entry(config, "replica_groups"));
  if (!list) return Error(op, "requires replica_groups in its backend_config");
  Attrs attrs;
  if (absl::Status status = AddGroupList(op, nodes().Entry(config, "replica_groups"), &attrs); !status.ok()) {
    return status;
  }
  const int64_t channel = nodes().IntegerValue(nodes().Entry(config, "channel_id")).value_or(0);
  if (channel > 0) attrs.push_back(Int(Attr::kChannelId, channel));
  return Emit(op, Opcode::kRaggedAllToAll, operands(op), attrs);
}

// As jax.export and others serialize them: @mhlo.erf(...) {mhlo.attributes = {...}, mhlo.version = 1}.
std::optional<absl::Status> Converter::ConvertRecomposed(const Op& op) {
  constexpr std::string_view kPrefix = "mhlo.";
  const std::string_view target = StringOf(op, "call_target_name");
  if (!target.starts_with(kPrefix) || IntOf(op, "mhlo.version", 1) != 1) return std::nullopt;
  const NodeId attributes = Attribute(op, "mhlo.attributes");
  const bool any = attributes.valid();
  if (any && nodes().kind(attributes) != NodeKind::kDictionary) return std::nullopt;
  Op made = op;
  const std::string name = StrCat("chlo.", target.substr(kPrefix.size()));
  if (target == mlir::DefinitionOf(OpKind::kMhloTopk).name) {
    const std::optional<int64_t> k = any ? nodes().IntegerValue(nodes().Entry(attributes, "k")) : std::nullopt;
    if (!k || op.operand_count != 1 || op.result_count != 2) return std::nullopt;
    const NodeId largest = nodes().Entry(attributes, "largest");
    const bool is_largest = !largest.valid() || nodes().IntegerValue(largest).value_or(1) != 0;
    made.definition = &mlir::DefinitionOf(OpKind::kMhloTopk);
    made.name = mutable_nodes().strings().Intern(made.definition->name);
    return EmitTuple(made, Opcode::kTopK, operands(op),
                     {Int(Attr::kK, *k), {Attr::kLargest, is_largest}, {Attr::kIsStable, 1}});
  }
  made.definition = mlir::FindDefinition(name);
  if (made.definition == nullptr || !made.definition->attributes.empty() || !IsConvertible(made) ||
      !made.definition->operand_counts.Contains(op.operand_count) ||
      !made.definition->result_counts.Contains(op.result_count) || op.region_count != 0) {
    return std::nullopt;
  }
  if (any && nodes().child_count(attributes) != 0) return std::nullopt;
  made.name = mutable_nodes().strings().Intern(name);
  return Dispatch(made);
}

absl::Status Converter::ConvertCustomCall(const Op& op) {
  if (std::optional<absl::Status> recomposed = ConvertRecomposed(op)) return *std::move(recomposed);
  if (StringOf(op, "call_target_name") == "ApproxTopK") return ConvertApproxTopK(op);
  if (std::optional<absl::Status> collective = ConvertAsyncCall(op)) return *std::move(collective);
  const NodeId config = BackendConfigOf(program_, op);
  if (StringOf(op, "call_target_name") == "ragged_all_to_all" && config.valid() &&
      nodes().kind(config) == NodeKind::kDictionary) {
    return ConvertRaggedAllToAll(op);
  }
  Attrs attrs = {String(Attr::kCustomCallTarget, StringOf(op, "call_target_name"))};
  if (IntOf(op, "has_side_effect") != 0) attrs.push_back({Attr::kCustomCallHasSideEffect, 1});
  int64_t version = IntOf(op, "api_version", 1);
  if (version < 0 || version > 4) return Error(op, "has an unknown API version");
  // A dictionary that stands beside an empty string, as JAX writes it, is of a typed call, as in XLA.
  const bool typed = config.valid() && nodes().kind(config) == NodeKind::kDictionary;
  if (version == 1 && typed) version = static_cast<int64_t>(CustomCallApiVersion::kTypedFfi);
  attrs.push_back({Attr::kApiVersion, static_cast<uint32_t>(version)});
  if (!EnumOf(op, "custom_call_schedule").empty()) {
    const std::string text = StrCat("SCHEDULE_", EnumOf(op, "custom_call_schedule"));
    const std::optional<uint32_t> schedule = EnumFromText(EnumType::kCustomCallSchedule, text);
    if (!schedule) return Error(op, "has a schedule that HLO does not know");
    if (*schedule != 0) attrs.push_back({Attr::kSchedule, *schedule});
  }
  if (config.valid()) {
    const std::string text =
        nodes().kind(config) == NodeKind::kString ? std::string(nodes().text(config)) : mlir::ToText(nodes(), config);
    if (!text.empty()) attrs.push_back(String(Attr::kBackendConfig, text));
  }
  const absl::StatusOr<std::vector<ComputationId>> called = CalledComputations(op);
  if (!called.ok()) return called.status();
  if (!called->empty()) attrs.push_back(b().CallsEach(Attr::kCalledComputations, *called));
  // Layouts of operands and results, minor to major.
  const NodeId operand_layouts = Attribute(op, "operand_layouts"), result_layouts = Attribute(op, "result_layouts");
  absl::StatusOr<Shape> shape = ResultsShape(op);
  if (!shape.ok()) return shape.status();
  const auto with_layout = [&](Shape array, NodeId layout, std::string_view spaces, size_t i) {
    const std::optional<Ints> order = nodes().Integers(layout);
    if (!order || !array.IsArray() || static_cast<int64_t>(order->size()) != array.rank()) return array;
    const Ints list = nodes().Integers(Attribute(op, spaces)).value_or(Ints());
    // A result has the tiles and the like of the shape that the operation keeps, if that agrees.
    const LayoutRecord* const kept = spaces == kResultMemorySpaces ? array.layout() : nullptr;
    const bool same =
        kept != nullptr && kept->extras != nullptr &&
        std::equal(order->begin(), order->end(), kept->minor_to_major.begin(), kept->minor_to_major.end());
    LayoutExtras extras = same ? *kept->extras : LayoutExtras();
    if (i < list.size() && list[i] > 0) extras.memory_space = list[i];
    return shapes().WithLayout(array, shapes().Layout(*order, extras));
  };
  if (operand_layouts.valid() && nodes().kind(operand_layouts) == NodeKind::kArray) {
    Ints ids;
    for (size_t i = 0; i < op.operand_count && i < nodes().child_count(operand_layouts); ++i) {
      ids.push_back(
          with_layout(shape_of(operand(op, i)), nodes().child(operand_layouts, i), kOperandMemorySpaces, i).id().value);
    }
    attrs.push_back(List(Attr::kOperandLayoutConstraints, ids));
  }
  if (result_layouts.valid() && nodes().kind(result_layouts) == NodeKind::kArray &&
      nodes().child_count(result_layouts) != 0) {
    if (op.result_count == 1 && shape->IsArray()) {
      *shape = with_layout(*shape, nodes().child(result_layouts, 0), kResultMemorySpaces, 0);
    } else if (shape->IsTuple()) {
      std::vector<Shape> elements(shape->elements().begin(), shape->elements().end());
      for (size_t i = 0; i < elements.size() && i < nodes().child_count(result_layouts); ++i) {
        elements[i] = with_layout(elements[i], nodes().child(result_layouts, i), kResultMemorySpaces, i);
      }
      *shape = shapes().Tuple(elements);
    }
  }
  const std::string_view target = StringOf(op, "call_target_name");
  const NodeId aliases = Attribute(op, "output_operand_aliases");
  if (aliases.valid() && nodes().kind(aliases) == NodeKind::kArray) {
    Ints list;
    for (NodeId alias : nodes().children(aliases)) {
      const Ints output = FieldInts(alias, "output_tuple_indices"), input = FieldInts(alias, "operand_tuple_indices");
      list.push_back(static_cast<int64_t>(output.size()));
      list.insert(list.end(), output.begin(), output.end());
      list.push_back(nodes().IntegerValue(nodes().Entry(alias, "operand_index")).value_or(0));
      list.push_back(static_cast<int64_t>(input.size()));
      list.insert(list.end(), input.begin(), input.end());
    }
    if (!list.empty()) attrs.push_back(List(Attr::kOutputToOperandAliasing, list));
  }
  // A pinned value, and a buffer that is released, are the operand itself.
  const bool same = target == "Pin" || target == "Unpin";
  if (same && !aliases.valid()) attrs.push_back(List(Attr::kOutputToOperandAliasing, Ints{0, 0, 0}));
  // The value of one result may be a tuple that xla_shape says.
  const Shape whole = op.result_count == 1 && !shape->IsTuple() ? ReadShape(StringOf(op, "xla_shape")) : Shape();
  if (whole.valid() && whole.IsTuple() && whole.tuple_size() == 1 &&
      whole.element(0).WithoutLayout() == shape->WithoutLayout()) {
    return SetResults(op, b().Add(Opcode::kCustomCall, operands(op), attrs, whole), /*always_tuple=*/true);
  }
  return SetResults(op, b().Add(Opcode::kCustomCall, operands(op), attrs, *shape));
}

}  // namespace hlokit::stablehlo
