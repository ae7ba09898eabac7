// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "ir/graph/attribute_views.h"
#include "ir/sharding/replica_groups.h"
#include "ir/sharding/sharding.h"
#include "ir/text/frontend_attributes.h"
#include "ir/text/printer.h"
#include "python/binding/values.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

// Replica groups with more devices than this stay text.
constexpr int64_t kMaxGroupDevices = 1 << 20;

std::string TextOf(const Module& module, AttrValue value) {
  std::string text;
  {
    TextWriter out(&text);
    PrintAttrValue(out, module, value);
  }
  return text;
}

py::tuple ListOfLists(absl::Span<const int64_t> encoded) {
  py::list result;
  for (size_t i = 0; i < encoded.size();) {
    const size_t size = static_cast<size_t>(encoded[i++]);
    if (size > encoded.size() - i) break;
    result.append(ToTuple(encoded.subspan(i, size)));
    i += size;
  }
  return py::tuple(result);
}

py::tuple Windows(absl::Span<const int64_t> encoded) {
  const WindowView window(encoded);
  py::tuple result(window.rank());
  for (int64_t i = 0; i < window.rank(); ++i) {
    const WindowDim d = window[i];
    result[i] = Make("WindowDimension", d.size, d.stride, d.padding_low, d.padding_high, d.base_dilation,
                     d.window_dilation, d.reversal);
  }
  return result;
}

// Returns a tuple of the records of three numbers.
py::tuple Triples(const char* type, absl::Span<const int64_t> encoded) {
  py::tuple result(encoded.size() / 3);
  for (size_t i = 0; i < encoded.size() / 3; ++i) {
    result[i] = Make(type, encoded[3 * i], encoded[3 * i + 1], encoded[3 * i + 2]);
  }
  return result;
}

// The order is that of the encoding (attribute.h) and of ConvolutionDimensions.
py::object Convolution(absl::Span<const int64_t> e, const std::string& text) {
  if (e.empty() || e[0] < 0 || e.size() != static_cast<size_t>(7 + 3 * e[0])) return py::str(text);
  const size_t n = static_cast<size_t>(e[0]);
  return Make("ConvolutionDimensions", e[1], e[2], ToTuple(e.subspan(3, n)), e[3 + n], e[4 + n],
              ToTuple(e.subspan(5 + n, n)), e[5 + 2 * n], e[6 + 2 * n], ToTuple(e.subspan(7 + 2 * n, n)));
}

constexpr std::string_view kShardingKinds[] = {"replicated", "manual", "unknown", "unreduced",
                                               "maximal",    "tiled",  "named"};

std::string ShardingText(const Context& context, ListId id) {
  std::string text;
  {
    TextWriter out(&text);
    PrintSharding(out, context, id);
  }
  return text;
}

py::object Leaf(Context* context, const ShardingLeaf& leaf) {
  py::list subgroups;
  for (const SubgroupType type : leaf.subgroups) {
    subgroups.append(ToStr(kSubgroupTypeTexts[static_cast<size_t>(type)]));
  }
  const bool tiled = leaf.kind == ShardingKind::kTiled, maximal = leaf.kind == ShardingKind::kMaximal;
  return Make("Sharding", ShardingText(*context, EncodeLeaf(context, leaf)),
              ToStr(kShardingKinds[static_cast<size_t>(leaf.kind)]), tiled ? ToTuple(leaf.tiles.dims) : py::tuple(),
              py::tuple(subgroups), maximal ? py::object(py::int_(leaf.device)) : py::object(py::none()));
}

py::object ShardingToPython(Context* context, ListId id) {
  const Sharding sharding = DecodeSharding(*context, id);
  if (!sharding.is_tuple) return Leaf(context, sharding.leaf());
  constexpr int64_t kMaxShownLeaves = 1 << 16;
  py::list leaves;
  for (const Sharding::Run& run : sharding.runs) {
    const py::object leaf = Leaf(context, run.leaf);
    for (int64_t i = 0; i < run.count && leaves.size() < kMaxShownLeaves; ++i) leaves.append(leaf);
  }
  return Make("Sharding", ShardingText(*context, id), "tuple", py::tuple(), py::tuple(), py::none(), py::tuple(leaves));
}

py::object Groups(const Module& module, ListId id, AttrValue value) {
  const absl::StatusOr<std::vector<std::vector<int64_t>>> groups =
      ExpandReplicaGroups(module.context(), id, kMaxGroupDevices);
  if (!groups.ok()) return py::str(TextOf(module, value));
  py::tuple result(groups->size());
  for (size_t i = 0; i < groups->size(); ++i) result[i] = ToTuple((*groups)[i]);
  return result;
}

// Returns the value of a list whose elements are numbers or ids.
py::object Elements(const ModulePtr& state, ElementKind kind, absl::Span<const int64_t> list) {
  const Module& module = state->read();
  py::tuple result(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const uint32_t id = static_cast<uint32_t>(list[i]);
    switch (kind) {
      case ElementKind::kBool:
        result[i] = py::bool_(list[i] != 0);
        break;
      case ElementKind::kPrecision:
        result[i] = ToStr(EnumTexts(EnumType::kPrecision)[id]);
        break;
      case ElementKind::kComputation:
        result[i] = py::cast(ComputationHandle{state, ComputationId(id)});
        break;
      case ElementKind::kInstruction:
        result[i] = py::cast(InstructionHandle{state, InstructionId(id)});
        break;
      case ElementKind::kShape:
        result[i] = py::cast(ShapeValue{module.shared_context(), module.context().shape(ShapeId(id))});
        break;
      case ElementKind::kString:
        result[i] = ToStr(module.context().str(StringId(id)));
        break;
      case ElementKind::kNone:
      case ElementKind::kInteger:
      case ElementKind::kIntegerList:
      case ElementKind::kMixed:
        result[i] = py::int_(list[i]);
        break;
    }
  }
  return result;
}

}  // namespace

py::tuple ToTuple(absl::Span<const int64_t> values) {
  py::tuple result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = py::int_(values[i]);
  return result;
}

py::str ToStr(std::string_view text) {
  PyObject* result = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(result);
}

py::object AttributeToPython(const ModulePtr& state, Instruction instruction, AttrValue value) {
  const Module& module = instruction.module();
  Context& context = module.context();
  const AttrType type = InfoOf(value.attr).type;
  switch (InfoOf(type).payload) {
    case PayloadKind::kBool:
      return py::bool_(value.payload != 0);
    case PayloadKind::kInt64:
      return py::int_(context.DecodeInt64(value.payload));
    case PayloadKind::kEnum:
      return ToStr(EnumTexts(InfoOf(value.attr).enum_type)[value.payload]);
    case PayloadKind::kFloat:
      return py::float_(std::bit_cast<float>(value.payload));
    case PayloadKind::kString:
      return ToStr(context.str(StringId(value.payload)));
    case PayloadKind::kComputation:
      return py::cast(ComputationHandle{state, ComputationId(value.payload)});
    case PayloadKind::kShape:
      return py::cast(ShapeValue{module.shared_context(), context.shape(ShapeId(value.payload))});
    case PayloadKind::kLiteral:
      return LiteralToPython(module.shared_context(), LiteralId(value.payload));
    case PayloadKind::kMetadata:
      return MetadataToPython(module, MetadataId(value.payload));
    case PayloadKind::kList:
      break;
  }
  const ListId id(value.payload);
  const absl::Span<const int64_t> list = context.list(id);
  if (type == AttrType::kWindow) return Windows(list);
  if (type == AttrType::kPadding) return Triples("PaddingDimension", list);
  if (type == AttrType::kSliceRanges) return Triples("SliceDimension", list);
  if (type == AttrType::kConvolutionDims) return Convolution(list, TextOf(module, value));
  if (type == AttrType::kSharding) return ShardingToPython(&context, id);
  if (type == AttrType::kReplicaGroups) return Groups(module, id, value);
  if (type == AttrType::kFrontendAttributes) {
    py::dict result;
    for (const auto& [key, text] : DecodeFrontendAttributes(context, id)) {
      result[ToStr(context.str(key))] = ToStr(context.str(text));
    }
    return result;
  }
  if (InfoOf(type).json != JsonForm::kValue) return ToStr(TextOf(module, value));
  if (InfoOf(type).elements == ElementKind::kIntegerList) return ListOfLists(list);
  return Elements(state, InfoOf(type).elements, list);
}

py::dict AttributesToPython(const ModulePtr& state, Instruction instruction) {
  py::dict result;
  for (const AttrValue value : instruction.attrs()) {
    result[ToStr(ToString(value.attr))] = AttributeToPython(state, instruction, value);
  }
  return result;
}

py::object MetadataToPython(const Module& module, MetadataId id) {
  const Context& context = module.context();
  const Metadata m = context.metadata[id];
  const auto text = [&context](StringId s) { return s.valid() ? ToStr(context.str(s)) : py::str(); };
  return Make("Metadata", text(m.op_name), text(m.op_type), text(m.source_file), m.source_line, m.source_end_line,
              m.source_column, m.source_end_column, m.stack_frame_id);
}

}  // namespace hlokit::python
