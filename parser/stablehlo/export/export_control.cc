// SPDX-License-Identifier: Apache-2.0
// Control flow, calls, tuples, and transfers to and from the host.
#include <algorithm>
#include <charconv>

#include "ir/core/str_cat.h"
#include "ir/text/frontend_attributes.h"
#include "parser/stablehlo/export/exporter.h"
#include "parser/stablehlo/kept_attributes.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;
using mlir::OpKind;

absl::Status Exporter::ExportParameter(Instruction /*instruction*/) { return absl::OkStatus(); }

absl::Status Exporter::ExportTuple(Instruction instruction) {
  // One whose elements are taken is an operation, as one without uses is.
  bool is_operation = !options_.as_xla && instruction.id() != instruction.parent().root().id();
  const std::vector<Instruction> users = instruction.users();
  is_operation = is_operation && (users.empty() || std::any_of(users.begin(), users.end(), [](Instruction user) {
                                    return user.opcode() == Opcode::kGetTupleElement;
                                  }));
  if (is_operation) {
    return DefineAs(instruction, OpKind::kStablehloTuple, OperandsOf(instruction), {}, {TypeOf(instruction.shape())});
  }
  elements_[instruction.id().value] = OperandsOf(instruction);
  values_[instruction.id().value] = mlir::ValueId();
  return absl::OkStatus();
}

void Exporter::Forward(Instruction from, Instruction to) {
  values_[to.id().value] = values_[from.id().value];
  elements_[to.id().value] = elements_[from.id().value];
  parts_[to.id().value] = parts_[from.id().value];
}

absl::Status Exporter::ExportForwarded(Instruction instruction) {
  Forward(instruction.operand(0), instruction);
  return absl::OkStatus();
}

// The value is that of a future, or was made at the start.
absl::Status Exporter::ExportDone(Instruction instruction) {
  const Instruction start = instruction.operand(0);
  if (futures_[start.id().value] == 0) return ExportForwarded(instruction);
  if (instruction.opcode() == Opcode::kAsyncUpdate) {
    futures_[instruction.id().value] = 1;
    return ExportForwarded(instruction);
  }
  std::vector<NodeId> updates;
  for (Instruction at = start; at.opcode() == Opcode::kAsyncUpdate; at = at.operand(0)) {
    updates.push_back(n().String(ToString(at.shape())));
  }
  std::reverse(updates.begin(), updates.end());
  Attributes kept;
  if (!updates.empty() && !options_.as_xla) kept = {{kAsyncUpdates, n().Make(NodeKind::kArray, "", {}, updates)}};
  return Define(instruction, OpKind::kStablehloAsyncDone, {values_[start.id().value]}, {}, kept);
}

absl::Status Exporter::ExportGetTupleElement(Instruction instruction) {
  const Instruction tuple = instruction.operand(0);
  const int64_t index = instruction.int_attr(Attr::kIndex);
  if (values_[tuple.id().value].valid()) {
    return DefineAs(instruction, OpKind::kStablehloGetTupleElement, {Whole(tuple)}, {{"index", I32(index)}},
                    {TypeOf(instruction.shape())});
  }
  const uint32_t id = instruction.id().value;
  const Values& known = elements_[tuple.id().value];
  const bool simple = static_cast<size_t>(index) < known.size() && known[static_cast<size_t>(index)].valid();
  const bool part = index == 0 && !simple && !known.empty() && instruction.shape().IsTuple();
  if (part || (index == 0 && !parts_[tuple.id().value].empty())) {
    // The data of a transfer, a tuple within a tuple.
    values_[id] = mlir::ValueId();
    elements_[id] = parts_[tuple.id().value];
    return absl::OkStatus();
  }
  // Of a tuple within a tuple the value is one.
  values_[id] = simple ? known[static_cast<size_t>(index)] : Elements(tuple)[static_cast<size_t>(index)];
  elements_[id].clear();
  return absl::OkStatus();
}

absl::Status Exporter::ExportWhile(Instruction instruction) {
  const Instruction init = instruction.operand(0);
  Values state;
  if (!IsUnpacked(init.shape())) {
    state = {Whole(init)};
  } else if (values_[init.id().value].valid()) {
    for (int64_t i = 0; i < init.shape().tuple_size(); ++i) {
      state.push_back(Emit(OpKind::kStablehloGetTupleElement, {Whole(init)}, {{"index", I32(i)}},
                           {TypeOf(init.shape().element(i))}, {}, {{kWhole, n().Bool(true)}})[0]);
    }
  } else {
    state = Elements(init);
  }
  Attributes marks;
  if (IsUnpacked(init.shape()) && (init.opcode() != Opcode::kTuple || values_[init.id().value].valid()))
    marks = {{kWhole, n().Bool(true)}};
  return Define(instruction, OpKind::kStablehloWhile, state, {}, marks);
}

absl::Status Exporter::ExportConditional(Instruction instruction) {
  const bool pred = instruction.operand(0).shape().element_type() == ElementType::kPred;
  return Define(instruction, pred ? OpKind::kStablehloIf : OpKind::kStablehloCase, {Whole(instruction.operand(0))});
}

// Fusions and asynchronous computations are calls too.
absl::Status Exporter::ExportCall(Instruction instruction) {
  if (!frames_.back().regions.empty()) {
    Attributes start;
    AddKept(instruction, {Attr::kAsyncExecutionThread, Attr::kOutputToOperandAliasing}, &start);
    return EmitStart(instruction, frames_.back().regions[0], start);
  }
  const Computation called = CalledBy(instruction);
  if (called.parameter_count() != instruction.operand_count()) return Unsupported(instruction, "operands that follow");
  const NodeId symbol = n().Make(NodeKind::kSymbol, functions_[called.id().value], {}, {});
  const std::optional<uint32_t> frontend = instruction.payload(Attr::kFrontendAttributes);
  const std::optional<std::string_view> name = FrontendAttributeOf(frontend, "composite.name");
  if (instruction.bool_attr(Attr::kIsComposite) && name) {
    Attributes composite = {{"name", n().String(*name)}, {"decomposition", symbol}};
    if (const auto text = FrontendAttributeOf(frontend, "composite.attributes"); text && *text != "{}") {
      const NodeId dictionary = ParseAttribute(*text, NodeKind::kDictionary);
      if (!dictionary.valid()) return Unsupported(instruction, "its composite.attributes");
      composite.push_back({"composite_attributes", dictionary});
    }
    if (const auto text = FrontendAttributeOf(frontend, "composite.version"); text && *text != "0") {
      int32_t version = 0;
      const char* const end = text->data() + text->size();
      const auto [stop, error] = std::from_chars(text->data(), end, version);
      if (error != std::errc() || stop != end) return Unsupported(instruction, "its composite.version");
      composite.push_back({"version", I32(version)});
    }
    return Define(instruction, OpKind::kStablehloComposite, OperandsOf(instruction), composite);
  }
  const Attributes attributes = {{"callee", symbol}};
  if (instruction.opcode() != Opcode::kAsyncStart) {
    Attributes kept;
    if (instruction.opcode() == Opcode::kFusion) {
      AddKept(instruction, {Attr::kFusionKind, Attr::kOutputToOperandAliasing}, &kept);
    } else {
      AddKept(instruction, {Attr::kOutputToOperandAliasing}, &kept, false);
    }
    return Define(instruction, OpKind::kFuncCall, OperandsOf(instruction), attributes, kept);
  }
  const std::vector<NodeId> types = StartedTypes(instruction);
  if (types.empty()) return Unsupported(instruction, "it is never done");
  return DefineAs(instruction, OpKind::kFuncCall, OperandsOf(instruction), attributes, types);
}

absl::Status Exporter::ExportCopyStart(Instruction instruction) {
  if (DoneOf(instruction).valid()) return DefineStart(instruction, OpKind::kMhloCopy, {});
  const std::vector<NodeId> types = StartedTypes(instruction);
  if (types.size() != 1) return Unsupported(instruction, "it is never done");
  return DefineAs(instruction, OpKind::kMhloCopy, OperandsOf(instruction), {}, types);
}

absl::Status Exporter::ExportBitcast(Instruction instruction) {
  // Only of arrays in the order of their dimensions the elements are in the same order.
  const auto plain = [&](Shape shape) {
    if (!shape.IsArray()) return false;
    const absl::Span<const int64_t> order = OrderOf(shape);
    for (size_t i = 0; i < order.size(); ++i) {
      if (order[i] != static_cast<int64_t>(order.size() - 1 - i)) return false;
    }
    return true;
  };
  const Shape from = instruction.operand(0).shape(), to = instruction.shape();
  if (!options_.as_xla && plain(from) && plain(to) && from.element_count() == to.element_count() &&
      from.element_type() == to.element_type()) {
    Attributes kept;
    AddKept(instruction, {}, &kept);
    return Define(instruction, OpKind::kStablehloReshape, OperandsOf(instruction), {}, kept);
  }
  const auto layout = [&](Shape shape) {
    const absl::Span<const int64_t> order = shape.IsArray() ? OrderOf(shape) : absl::Span<const int64_t>();
    const int64_t sizes[] = {static_cast<int64_t>(order.size())};
    const NodeId type = n().Tensor(sizes, n().Make(NodeKind::kIndexType));
    const auto* data = reinterpret_cast<const std::byte*>(n().arena().CopyArray(order.data(), order.size()));
    return n().MakeBlob(type, data, order.size() * sizeof(int64_t), order.size() == 1);
  };
  return Define(instruction, OpKind::kMhloBitcast, OperandsOf(instruction), {},
                {{"source_layout", layout(from)}, {"result_layout", layout(to)}});
}

absl::Status Exporter::ExportDynamicReshape(Instruction instruction) {
  // The sizes are one vector.
  Values operands = {Whole(instruction.operand(0))}, sizes;
  const int64_t one[] = {1};
  for (int64_t i = 1; i < instruction.operand_count(); ++i) {
    const NodeId element = ElementTypeOf(instruction.operand(i).shape().element_type());
    sizes.push_back(
        Emit(OpKind::kStablehloReshape, {Whole(instruction.operand(i))}, {}, {n().Tensor(one, element)})[0]);
  }
  if (sizes.empty()) return Unsupported(instruction, "it has no sizes");
  const int64_t count[] = {static_cast<int64_t>(sizes.size())};
  const NodeId element = n().child(out_->type(sizes[0]), 0);
  operands.push_back(
      Emit(OpKind::kStablehloConcatenate, sizes, {{"dimension", I64(0)}}, {n().Tensor(count, element)})[0]);
  return Define(instruction, OpKind::kStablehloDynamicReshape, operands);
}

// ---- the host ----

// The arrays of what is sent: the elements of a tuple.
Exporter::Values Exporter::DataOf(Instruction data) {
  if (!data.shape().IsTuple()) return {Whole(data)};
  if (!values_[data.id().value].valid()) return Elements(data);
  Values values;
  for (int64_t i = 0; i < data.shape().tuple_size(); ++i) {
    values.push_back(Emit(OpKind::kStablehloGetTupleElement, {Whole(data)}, {{"index", I32(i)}},
                          {TypeOf(data.shape().element(i))})[0]);
  }
  return values;
}

// The types of received data, and of a token.
std::vector<NodeId> Exporter::DataTypes(Shape data) {
  std::vector<NodeId> types;
  if (data.IsTuple()) {
    for (Shape element : data.elements()) types.push_back(TypeOf(element));
  } else {
    types.push_back(TypeOf(data));
  }
  types.push_back(n().Make(NodeKind::kDialectType, "stablehlo.token", {}, {}));
  return types;
}

// The value of an instruction is a tuple of data and a token.
void Exporter::BindData(Instruction instruction, Shape data, const Values& results) {
  const uint32_t id = instruction.id().value;
  values_[id] = mlir::ValueId();
  parts_[id].clear();
  if (data.IsTuple()) {
    parts_[id].assign(results.begin(), results.end() - 1);
    elements_[id] = {mlir::ValueId(), results.back()};
  } else {
    elements_[id] = results;
  }
}

absl::Status Exporter::ExportInfeed(Instruction instruction) {
  const Shape data = instruction.shape().element(0);
  const std::vector<NodeId> types = DataTypes(data);
  for (NodeId type : types) {
    if (!type.valid()) return Unsupported(instruction, "its type");
  }
  Attributes attributes = {{"infeed_config", n().String(instruction.string_attr(Attr::kInfeedConfig))}};
  std::vector<NodeId> layouts;
  for (size_t i = 0; i + 1 < types.size(); ++i) {
    const Shape part = data.IsTuple() ? data.element(static_cast<int64_t>(i)) : data;
    if (!part.IsArray()) return Unsupported(instruction, "tuples within its data");
    layouts.push_back(IntegerArray(OrderOf(part)));
  }
  attributes.push_back({"layout", n().Make(NodeKind::kArray, "", {}, layouts)});
  Attributes discardable = Discardable(instruction);
  if (!data.IsTuple()) AddKept(instruction, {}, &discardable);
  BindData(instruction, data,
           Emit(OpKind::kStablehloInfeed, OperandsOf(instruction), attributes, types, {}, discardable,
                LocationOf(instruction)));
  return absl::OkStatus();
}

absl::Status Exporter::ExportOutfeed(Instruction instruction) {
  Values operands = DataOf(instruction.operand(0));
  operands.push_back(Whole(instruction.operand(1)));
  Attributes kept;
  if (!instruction.operand(0).shape().IsTuple()) AddKept(instruction, {}, &kept);
  return Define(instruction, OpKind::kStablehloOutfeed, operands,
                {{"outfeed_config", n().String(instruction.string_attr(Attr::kOutfeedConfig))}}, kept);
}

// Channel, kind, and the pairs of devices, which travel as a frontend attribute.
Exporter::Attributes Exporter::TransferAttributes(Instruction instruction, int64_t host_type) {
  const bool host = instruction.bool_attr(Attr::kIsHostTransfer);
  Attributes attributes = {{"channel_handle", ChannelOf(instruction, host ? host_type : 1)},
                           {"is_host_transfer", n().Bool(host)}};
  const std::optional<uint32_t> list = instruction.payload(Attr::kFrontendAttributes);
  if (!list) return attributes;
  const Context& context = module_.context();
  for (const FrontendAttribute& entry : DecodeFrontendAttributes(context, ListId(*list))) {
    if (context.str(entry.first) != kSourceTargetPairs) continue;
    Ints numbers;
    int64_t number = -1;
    for (char c : context.str(entry.second)) {
      if (c >= '0' && c <= '9') {
        if (number > (int64_t{1} << 40)) return attributes;
        number = std::max<int64_t>(number, 0) * 10 + (c - '0');
      } else if (number >= 0) {
        numbers.push_back(number);
        number = -1;
      }
    }
    if (numbers.empty() || numbers.size() % 2 != 0) return attributes;
    const int64_t sizes[] = {static_cast<int64_t>(numbers.size() / 2), 2};
    attributes.push_back({"source_target_pairs", Elements64(numbers, sizes)});
  }
  return attributes;
}

absl::Status Exporter::CheckCompleted(Instruction transfer) const {
  const std::vector<Instruction> users = transfer.users();
  const bool completed = std::all_of(users.begin(), users.end(), [](Instruction user) {
    return (HasTrait(user.opcode(), kTransfers) && HasTrait(user.opcode(), kEndsAsync));
  });
  return completed && !transfer.is_root() ? absl::OkStatus()
                                          : Unsupported(transfer, "another computation completes it");
}

absl::Status Exporter::ExportSend(Instruction instruction) {
  if (absl::Status status = CheckCompleted(instruction); !status.ok()) return status;
  Values operands = DataOf(instruction.operand(0));
  operands.push_back(Whole(instruction.operand(1)));
  return DefineAs(instruction, OpKind::kStablehloSend, operands, TransferAttributes(instruction, 2),
                  {n().Make(NodeKind::kDialectType, "stablehlo.token", {}, {})});
}

absl::Status Exporter::ExportRecv(Instruction instruction) {
  if (absl::Status status = CheckCompleted(instruction); !status.ok()) return status;
  const Shape data = instruction.shape().element(0);
  const std::vector<NodeId> types = DataTypes(data);
  for (NodeId type : types) {
    if (!type.valid()) return Unsupported(instruction, "its type");
  }
  Attributes discardable = Discardable(instruction);
  for (Instruction done : instruction.users()) {
    // The operation has the results of the done, and XLA gives it the sharding of that.
    const std::optional<uint32_t> sharding = done.payload(Attr::kSharding);
    if (!options_.as_xla || !sharding) continue;
    for (NamedAttribute& attribute : discardable) {
      if (attribute.name == "mhlo.sharding") attribute.value = n().String(ShardingText(ListId(*sharding)));
    }
  }
  BindData(instruction, data,
           Emit(OpKind::kStablehloRecv, OperandsOf(instruction), TransferAttributes(instruction, 3), types, {},
                discardable, LocationOf(instruction)));
  return absl::OkStatus();
}

absl::Status Exporter::ExportCustomCall(Instruction instruction) {
  for (Attr attr : {Attr::kLiteral, Attr::kWindow, Attr::kDimLabels, Attr::kOperandPrecision}) {
    if (instruction.has(attr) && options_.as_xla) {
      return Unsupported(instruction, ToString(attr));
    }
  }
  Attributes attributes = {{"call_target_name", n().String(instruction.string_attr(Attr::kCustomCallTarget))}};
  if (instruction.bool_attr(Attr::kCustomCallHasSideEffect)) attributes.push_back({"has_side_effect", n().Bool(true)});
  const std::string_view config = instruction.string_attr(Attr::kBackendConfig);
  const std::optional<uint32_t> version = instruction.payload(Attr::kApiVersion);
  // The typed interface has dictionaries, of which HLO keeps the text.
  NodeId dictionary;
  if (version == 4u) dictionary = ParseAttribute(config, NodeKind::kDictionary);
  if (dictionary.valid() && !options_.as_xla && mlir::ToText(n(), dictionary) != config) dictionary = NodeId();
  if (dictionary.valid() || !config.empty() || (options_.as_xla && version != 4u)) {
    attributes.push_back({"backend_config", dictionary.valid() ? dictionary : n().String(config)});
  }
  // A text that is no dictionary as MLIR prints it goes with the version of texts; the own version is kept.
  const bool other_version = version == 4u && !config.empty() && !dictionary.valid();
  if (version) attributes.push_back({"api_version", I32(other_version ? 1 : *version)});
  const std::vector<Computation> called = instruction.called_computations();
  if (!called.empty()) {
    std::vector<NodeId> symbols;
    for (Computation computation : called) {
      symbols.push_back(n().Make(NodeKind::kSymbol, functions_[computation.id().value], {}, {}));
    }
    attributes.push_back({"called_computations", n().Make(NodeKind::kArray, "", {}, symbols)});
  }
  if (instruction.has(Attr::kOperandLayoutConstraints)) {
    const auto layout = [&](Shape shape) {
      const absl::Span<const int64_t> order = shape.IsArray() ? OrderOf(shape) : absl::Span<const int64_t>();
      const int64_t sizes[] = {static_cast<int64_t>(order.size())};
      const NodeId type = n().Tensor(sizes, n().Make(NodeKind::kIndexType));
      const auto* data = reinterpret_cast<const std::byte*>(n().arena().CopyArray(order.data(), order.size()));
      return n().MakeBlob(type, data, order.size() * sizeof(int64_t), order.size() == 1);
    };
    std::vector<NodeId> operands, results;
    for (int64_t id : instruction.list_attr(Attr::kOperandLayoutConstraints)) {
      const Shape shape = module_.context().shapes[ShapeId(static_cast<uint32_t>(id))];
      if (shape.IsTuple()) return Unsupported(instruction, "layouts of tuples");
      operands.push_back(layout(shape));
    }
    if (instruction.shape().IsTuple()) {
      for (Shape element : instruction.shape().elements()) {
        if (element.IsTuple()) return Unsupported(instruction, "layouts of tuples");
        results.push_back(layout(element));
      }
    } else {
      results.push_back(layout(instruction.shape()));
    }
    attributes.push_back({"operand_layouts", n().Make(NodeKind::kArray, "", {}, operands)});
    attributes.push_back({"result_layouts", n().Make(NodeKind::kArray, "", {}, results)});
  }
  if (instruction.has(Attr::kOutputToOperandAliasing)) {
    // For each: size and indices of the output, the operand, size and indices in it.
    const Ints list = IntsOf(instruction, Attr::kOutputToOperandAliasing);
    std::vector<NodeId> aliases;
    for (size_t i = 0; i < list.size();) {
      const auto take = [&] {
        const auto count = static_cast<size_t>(list[i++]);
        Ints path(list.begin() + static_cast<std::ptrdiff_t>(i), list.begin() + static_cast<std::ptrdiff_t>(i + count));
        i += count;
        return path;
      };
      const Ints output = take();
      const int64_t operand = list[i++];
      const Ints input = take();
      const int64_t names[] = {n().strings().Intern("output_tuple_indices").value,
                               n().strings().Intern("operand_index").value,
                               n().strings().Intern("operand_tuple_indices").value};
      const NodeId values[] = {IntegerArray(output), I64(operand), IntegerArray(input)};
      aliases.push_back(n().Make(NodeKind::kFields, "stablehlo.output_operand_alias", names, values));
    }
    attributes.push_back({"output_operand_aliases", n().Make(NodeKind::kArray, "", {}, aliases)});
  }
  Attributes kept;
  if (instruction.has(Attr::kOperandLayoutConstraints)) {
    Ints spaces;
    for (int64_t id : instruction.list_attr(Attr::kOperandLayoutConstraints)) {
      const LayoutRecord* layout = module_.context().shapes[ShapeId(static_cast<uint32_t>(id))].layout();
      spaces.push_back(layout == nullptr ? 0 : layout->memory_space());
    }
    const bool any = std::any_of(spaces.begin(), spaces.end(), [](int64_t space) { return space != 0; });
    if (any) kept.push_back({kOperandMemorySpaces, Dims(spaces)});
  }
  std::vector<Attr> texts = {Attr::kLiteral,           Attr::kWindow,         Attr::kDimLabels, Attr::kOperandPrecision,
                             Attr::kFeatureGroupCount, Attr::kBatchGroupCount};
  if (other_version) texts.push_back(Attr::kApiVersion);
  AddKept(instruction, texts, &kept, false);
  const uint32_t schedule = instruction.payload(Attr::kSchedule).value_or(0);
  if (schedule == 0)
    return Define(instruction, OpKind::kStablehloCustomCall, OperandsOf(instruction), attributes, kept);
  // Only the operation of MHLO has one.
  constexpr std::string_view kPrefix = "SCHEDULE_";
  const std::string_view value = EnumTexts(EnumType::kCustomCallSchedule)[schedule].substr(kPrefix.size());
  attributes.push_back({"custom_call_schedule", n().Enum("mhlo.custom_call_schedule", value)});
  return Define(instruction, OpKind::kMhloCustomCall, OperandsOf(instruction), attributes, kept);
}

}  // namespace hlokit::stablehlo
