// SPDX-License-Identifier: Apache-2.0
// Types and attributes that many operations share.
#include <algorithm>
#include <bit>

#include "ir/core/str_cat.h"
#include "ir/sharding/replica_groups.h"
#include "parser/mlir/bounds.h"
#include "parser/stablehlo/import/converter.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

absl::StatusOr<Shape> Converter::ShapeOfType(NodeId root) {
  const mlir::NodeTable& n = nodes();
  std::vector<std::pair<NodeId, bool>> pending = {{root, false}};
  std::vector<Shape> made;
  const auto unknown = [&](NodeId type) {
    return Invalid(StrCat("HLO has no place for the type '", mlir::ToText(n, type), "'"));
  };
  while (!pending.empty()) {
    const auto [type, leaving] = pending.back();
    pending.pop_back();
    switch (n.kind(type)) {
      case NodeKind::kTensorType:
      case NodeKind::kMemRefType: {
        const std::optional<ElementType> element = n.HloElementType(n.child(type, 0));
        if (!element || n.kind(n.child(type, 0)) == NodeKind::kIndexType) return unknown(type);
        std::vector<int64_t> sizes(n.ints(type).begin(), n.ints(type).end());
        std::vector<uint8_t> dynamic(sizes.size(), 0);
        std::vector<int64_t> bounds;
        if (n.child_count(type) > 1 && n.kind(type) == NodeKind::kTensorType &&
            (!mlir::ReadBounds(n, n.child(type, 1), &bounds) || bounds.size() != sizes.size())) {
          return unknown(type);
        }
        bool any_dynamic = false;
        for (size_t i = 0; i < sizes.size(); ++i) {
          if (sizes[i] != mlir::kDynamicSize) continue;
          any_dynamic = true;
          dynamic[i] = 1;
          sizes[i] = !bounds.empty() && bounds[i] != mlir::kDynamicSize ? bounds[i] : kUnboundedSize;
        }
        const Shape array = shapes().Array(*element, sizes, any_dynamic ? dynamic : std::vector<uint8_t>());
        if (n.kind(type) != NodeKind::kMemRefType) {
          made.push_back(array);
          break;
        }
        const Shape laid_out = BufferLayout(type, array);
        if (!laid_out.valid()) return unknown(type);
        made.push_back(shapes().Buffer(laid_out));
        break;
      }
      case NodeKind::kTupleType:
      case NodeKind::kFutureType: {
        const size_t count = n.child_count(type);
        if (!leaving) {
          pending.push_back({type, true});
          for (size_t i = count; i-- > 0;) pending.push_back({n.child(type, i), false});
          break;
        }
        const Shape tuple = shapes().Tuple(absl::Span<const Shape>(made).subspan(made.size() - count));
        if (tuple.leaf_count() > kMaxLeaves) return Invalid("a tuple has too many elements");
        made.resize(made.size() - count);
        made.push_back(tuple);
        break;
      }
      case NodeKind::kDialectType:
        if (n.text(type) != "stablehlo.token" && n.text(type) != "mhlo.token") return unknown(type);
        made.push_back(shapes().Token());
        break;
      default:
        return unknown(type);
    }
  }
  return made.back();
}

absl::StatusOr<Converter::Ints> Converter::IntsOf(const Op& op, std::string_view name, bool optional) const {
  const NodeId value = Attribute(op, name);
  if (!value.valid() && optional) return Ints();
  if (std::optional<Ints> list = nodes().Integers(value)) return *std::move(list);
  return Error(op, StrCat("requires attribute '", name, "'"));
}

Converter::Ints Converter::FieldInts(NodeId fields, std::string_view name) const {
  return nodes().Integers(nodes().Entry(fields, name)).value_or(Ints());
}

int64_t Converter::IntOf(const Op& op, std::string_view name, int64_t absent) const {
  const NodeId value = Attribute(op, name);
  if (value.valid() && nodes().kind(value) == NodeKind::kUnit) return 1;
  return nodes().IntegerValue(value).value_or(absent);
}

std::string_view Converter::StringOf(const Op& op, std::string_view name) const {
  const NodeId value = Attribute(op, name);
  if (!value.valid() || (nodes().kind(value) != NodeKind::kString && nodes().kind(value) != NodeKind::kSymbol))
    return "";
  return nodes().text(value);
}

std::string_view Converter::EnumOf(const Op& op, std::string_view name) const {
  const NodeId value = Attribute(op, name);
  if (!value.valid() || nodes().kind(value) != NodeKind::kEnum) return "";
  return nodes().str(StringId(static_cast<uint32_t>(nodes().ints(value)[0])));
}

absl::StatusOr<AttrValue> Converter::EnumAttr(const Op& op, std::string_view name, Attr attr, std::string_view prefix) {
  std::string text = StrCat(prefix, EnumOf(op, name));
  if (!prefix.empty()) {
    for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  }
  const std::optional<uint32_t> value = EnumFromText(InfoOf(attr).enum_type, text);
  if (!value) return Error(op, StrCat("has no value of '", name, "' that HLO knows"));
  return AttrValue{attr, *value};
}

absl::Status Converter::AddPrecision(const Op& op, Attrs* attrs) {
  const NodeId config = Attribute(op, "precision_config");
  if (!config.valid() || nodes().kind(config) != NodeKind::kArray) return absl::OkStatus();
  Ints values;
  for (NodeId item : nodes().children(config)) {
    if (nodes().kind(item) != NodeKind::kEnum) return Error(op, "has a precision config that HLO does not know");
    std::string text(nodes().str(StringId(static_cast<uint32_t>(nodes().ints(item)[0]))));
    for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    const std::optional<uint32_t> value = EnumFromText(EnumType::kPrecision, text);
    if (!value) return Error(op, StrCat("has the precision ", text, ", which HLO does not know"));
    values.push_back(*value);
  }
  if (!values.empty()) attrs->push_back(List(Attr::kOperandPrecision, values));
  return absl::OkStatus();
}

absl::Status Converter::AddChannel(const Op& op, Attrs* attrs) {
  const NodeId channel = Attribute(op, "channel_handle");
  if (!channel.valid()) return absl::OkStatus();
  const int64_t handle = nodes().IntegerValue(nodes().Entry(channel, "handle")).value_or(0);
  if (handle > 0) attrs->push_back(Int(Attr::kChannelId, handle));
  return absl::OkStatus();
}

absl::Status Converter::AddGroups(const Op& op, Attrs* attrs) {
  return AddGroupList(op, Attribute(op, "replica_groups"), attrs);
}

// #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>
absl::Status Converter::AddMeshGroups(const Op& op, NodeId value, Attrs* attrs) {
  const NodeId name = nodes().Entry(value, "mesh"), axes = nodes().Entry(value, "axes");
  ReplicaGroups groups;
  groups.kind = ReplicaGroups::Kind::kMesh;
  SdyMesh mesh;
  if (name.valid() && nodes().kind(name) == NodeKind::kSymbol) {
    const auto found = meshes_.find(std::string(nodes().text(name)));
    if (found == meshes_.end()) {
      return Error(op, StrCat("has replica groups by an unknown mesh @", nodes().text(name)));
    }
    mesh = found->second;
  } else {
    const absl::StatusOr<SdyMesh> read = ReadStablehloMesh(nodes(), name);
    if (!read.ok()) return Error(op, std::string(read.status().message()));
    mesh = *read;
  }
  for (const auto& [axis, size] : mesh.axes) {
    groups.mesh.names.push_back(context().strings.Intern(axis));
    groups.mesh.devices.dims.push_back(size);
  }
  groups.mesh.devices.devices = mesh.devices;
  if (mesh.devices.empty()) groups.mesh.devices.iota = {{DeviceCount(groups.mesh.devices.dims).value_or(1)}, {0}};
  if (!axes.valid() || nodes().kind(axes) != NodeKind::kArray) return Error(op, "has replica groups without axes");
  for (NodeId ref : nodes().children(axes)) {
    const NodeId axis = nodes().Entry(ref, "name"), part = nodes().Entry(ref, "sub_axis_info");
    const std::string_view text = axis.valid() ? nodes().text(axis) : std::string_view();
    AxisRef& added = groups.axes.emplace_back();
    while (added.axis < groups.mesh.rank() && mesh.axes[static_cast<size_t>(added.axis)].first != text) ++added.axis;
    if (added.axis == groups.mesh.rank()) {
      return Error(op, StrCat("has replica groups by an unknown axis \"", text, "\""));
    }
    if (part.valid() && !ReadSdySubAxis(mlir::ToText(nodes(), part), &added.pre_size, &added.size)) {
      return Error(op, "has replica groups by a malformed part of an axis");
    }
  }
  if (std::optional<std::string> error = CheckMeshGroups(context(), &groups)) {
    return Error(op, StrCat("has bad replica groups: ", *error));
  }
  attrs->push_back({Attr::kReplicaGroups, EncodeReplicaGroups(&context(), groups).value});
  return absl::OkStatus();
}

absl::Status Converter::AddGroupList(const Op& op, NodeId value, Attrs* attrs) {
  if (value.valid() && nodes().kind(value) == NodeKind::kFields) return AddMeshGroups(op, value, attrs);
  const std::optional<Ints> list = nodes().Integers(value);
  if (!list) return Error(op, "has replica groups that HLO has no place for");
  const NodeId type = nodes().kind(value) == NodeKind::kDense ? nodes().child(value, 0) : NodeId();
  if (!type.valid() || nodes().ints(type).size() != 2) return Error(op, "replica groups should be a rank 2 tensor");
  const auto size = static_cast<size_t>(nodes().ints(type)[1]);
  std::vector<std::vector<int64_t>> groups;
  for (size_t i = 0; size != 0 && i < list->size(); i += size) {
    groups.emplace_back();
    for (size_t k = i; k < i + size; ++k) {
      if ((*list)[k] >= 0) groups.back().push_back((*list)[k]);  // -1 is padding
    }
  }
  const ListId id = EncodeReplicaGroups(&context(), ReplicaGroups::List(std::move(groups)));
  attrs->push_back({Attr::kReplicaGroups, id.value});
  return absl::OkStatus();
}

absl::Status Converter::AddAccuracy(const Op& op, Attrs* attrs) {
  const NodeId value = Attribute(op, "result_accuracy");
  if (!value.valid() || nodes().kind(value) != NodeKind::kFields) return absl::OkStatus();
  const NodeId mode = nodes().Entry(value, "mode");
  const std::string_view text = mode.valid() && nodes().kind(mode) == NodeKind::kEnum
                                    ? nodes().str(StringId(static_cast<uint32_t>(nodes().ints(mode)[0])))
                                    : "DEFAULT";
  if (text == "DEFAULT") return absl::OkStatus();
  const auto number = [&](std::string_view name) {
    const NodeId entry = nodes().Entry(value, name);
    return entry.valid() && nodes().kind(entry) == NodeKind::kFloat ? nodes().ints(entry)[0] : int64_t{0};
  };
  const ResultAccuracyMode accuracy = text == "HIGHEST" ? ResultAccuracyMode::kHighest : ResultAccuracyMode::kTolerance;
  const int64_t list[] = {static_cast<int64_t>(accuracy), number("atol"), number("rtol"),
                          nodes().IntegerValue(nodes().Entry(value, "ulps")).value_or(0)};
  attrs->push_back(List(Attr::kResultAccuracy, list));
  return absl::OkStatus();
}

absl::Status Converter::AddAlgorithm(const Op& op, Attrs* attrs) {
  const NodeId value = Attribute(op, "algorithm");
  if (!value.valid() || nodes().kind(value) != NodeKind::kFields) return absl::OkStatus();
  const auto type = [&](std::string_view name) {
    const NodeId entry = nodes().Entry(value, name);
    return entry.valid() ? std::string(nodes().text(entry)) : std::string();
  };
  const std::string lhs = type("lhs_precision_type"), rhs = type("rhs_precision_type"), sum = type("accumulation_type");
  const int64_t operations = nodes().IntegerValue(nodes().Entry(value, "num_primitive_operations")).value_or(1);
  const bool imprecise = nodes().IntegerValue(nodes().Entry(value, "allow_imprecise_accumulation")).value_or(0) != 0;
  std::string name;
  if (lhs.starts_with("f8") && rhs.starts_with("f8")) {
    name = StrCat("dot_any_f8_any_f8_", sum, imprecise ? "_fast_accum" : "");
  } else {
    name = StrCat("dot_", lhs, "_", rhs, "_", sum);
    if (operations > 1) StrAppend(&name, "_x", operations);
  }
  const std::optional<uint32_t> algorithm = EnumFromText(EnumType::kDotAlgorithm, name);
  if (!algorithm) return Error(op, StrCat("has an algorithm that HLO does not know: ", name));
  attrs->push_back({Attr::kDotAlgorithm, *algorithm});
  return absl::OkStatus();
}

}  // namespace hlokit::stablehlo
