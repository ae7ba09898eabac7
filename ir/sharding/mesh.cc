// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/mesh.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

bool IsNumber(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Returns `'x':(1)2`, as printed.
std::string AxisToString(const Context& context, const Mesh& mesh, const AxisRef& ref) {
  std::string text;
  {
    TextWriter out(&text);
    PrintAxes(out, context, mesh, {&ref, 1}, "");
  }
  return text;
}

bool Overlap(const AxisRef& a, const AxisRef& b) {
  return a.whole() || b.whole() || (a.end() > b.pre_size && b.end() > a.pre_size);
}

// Returns true if the outer sub-axis ends at a divisor of where the inner one begins: disjoint sub-axes belong to one
// factorization of the axis.
bool Nested(const AxisRef& a, const AxisRef& b) {
  return std::max(a.pre_size, b.pre_size) % std::min(a.end(), b.end()) == 0;
}

bool IsContinuedBy(const AxisRef& a, const AxisRef& b) {
  return a.axis == b.axis && !a.whole() && !b.whole() && a.end() == b.pre_size;
}

}  // namespace

std::optional<std::string> CheckMesh(const Context& context, Mesh* mesh) {
  TileAssignment& devices = mesh->devices;
  if (mesh->maximal()) {
    if (devices.devices.size() == 1 && devices.devices[0] >= 0) return std::nullopt;
    return "expected one non-negative device in a maximal mesh";
  }
  absl::flat_hash_set<uint32_t> seen;
  for (StringId name : mesh->names) {
    const std::string_view text = context.str(name);
    if (text.empty()) return "missing name of a mesh axis";
    if (IsNumber(text)) return StrCat("mesh axis name `", text, "` is a number");
    if (!seen.insert(name.value).second) return StrCat("duplicate axis `", text, "` in mesh");
  }
  const std::optional<int64_t> count = DeviceCount(devices.dims);
  if (!count) return "the axis sizes of the mesh must be positive, with a product below 2^63";
  if (mesh->names.empty()) return std::nullopt;
  if (devices.is_iota()) {
    if (!devices.iota.Valid() || DeviceCount(devices.iota.reshape) != count) {
      return StrCat("device_ids are not a permutation of the ", *count, " devices of the mesh");
    }
    devices.iota.Canonicalize();
    return std::nullopt;
  }
  if (devices.devices.size() != static_cast<uint64_t>(*count)) {
    return StrCat("the mesh has ", *count, " devices, but device_ids lists ", devices.devices.size());
  }
  if (std::is_sorted(devices.devices.begin(), devices.devices.end())) {
    devices.iota = {{*count}, {0}};
  }
  std::vector<bool> used(devices.devices.size(), false);
  for (int64_t id : devices.devices) {
    if (id < 0 || id >= *count || used[static_cast<size_t>(id)]) {
      return StrCat("device_ids are not a permutation of 0 to ", *count - 1);
    }
    used[static_cast<size_t>(id)] = true;
  }
  if (devices.is_iota()) devices.devices.clear();
  return std::nullopt;
}

std::optional<std::string> AxisUses::AddOne(const AxisRef& ref) {
  if (ref.axis < 0 || ref.axis >= mesh_.rank()) {
    return StrCat("axis number ", ref.axis, " is out of range: the mesh has ", mesh_.rank(), " axes");
  }
  const int64_t axis_size = mesh_.axis_size(ref.axis);
  if (!ref.whole()) {
    int64_t end;
    if (ref.pre_size < 1 || ref.size < 2 || __builtin_mul_overflow(ref.pre_size, ref.size, &end) ||
        axis_size % end != 0 || ref.size >= axis_size) {
      return StrCat(AxisToString(context_, mesh_, ref), " is not a proper sub-axis of an axis of size ", axis_size);
    }
  }
  // Few: disjoint sub-axes have sizes of at least two whose product is at most the axis.
  std::vector<AxisRef>& others = uses_[static_cast<size_t>(ref.axis)];
  for (const AxisRef& other : others) {
    if (Overlap(ref, other) || !Nested(ref, other)) {
      return StrCat(AxisToString(context_, mesh_, ref), " and ", AxisToString(context_, mesh_, other),
                    " cannot be used together");
    }
  }
  others.push_back(ref);
  return std::nullopt;
}

std::optional<std::string> AxisUses::Add(absl::Span<const AxisRef> axes) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (std::optional<std::string> error = AddOne(axes[i])) return error;
    if (i != 0 && IsContinuedBy(axes[i - 1], axes[i])) {
      return StrCat(AxisToString(context_, mesh_, axes[i - 1]), ", ", AxisToString(context_, mesh_, axes[i]),
                    " is one sub-axis; expected it in merged form");
    }
  }
  return std::nullopt;
}

std::optional<std::string> AxisUses::AddSorted(absl::Span<const AxisRef> axes, std::string_view what) {
  const auto before = [this](const AxisRef& a, const AxisRef& b) {
    if (std::tie(a.axis, a.pre_size) != std::tie(b.axis, b.pre_size)) {
      return std::tie(a.axis, a.pre_size) < std::tie(b.axis, b.pre_size);
    }
    return a.SizeIn(mesh_) < b.SizeIn(mesh_);
  };
  if (std::optional<std::string> error = Add(axes)) return error;  // first: the axes must exist to be compared
  if (std::is_sorted(axes.begin(), axes.end(), before)) return std::nullopt;
  return StrCat("the ", what, " axes are not in the order of the mesh");
}

bool CoversMesh(const Mesh& mesh, absl::Span<const AxisRef> axes) {
  size_t next = 0;
  for (int64_t axis = 0; axis < mesh.rank(); ++axis) {
    if (next < axes.size() && axes[next] == AxisRef{axis, 1, 0}) {
      ++next;
    } else if (mesh.axis_size(axis) != 1) {
      return false;
    }
  }
  return next == axes.size();
}

int64_t AxesSize(const Mesh& mesh, absl::Span<const AxisRef> axes) {
  int64_t size = 1;
  for (const AxisRef& ref : axes) {
    if (__builtin_mul_overflow(size, ref.SizeIn(mesh), &size)) return std::numeric_limits<int64_t>::max();
  }
  return size;
}

namespace {

// Prints the name in single quotes. Names are plain words; quotes and escapes in them are escaped.
void PrintAxisName(TextWriter& out, std::string_view name) {
  out << '\'';
  for (char c : name) {
    if (c == '\'' || c == '\\') out << '\\';
    out << c;
  }
  out << '\'';
}

}  // namespace

void PrintMesh(TextWriter& out, const Context& context, const Mesh& mesh) {
  if (mesh.maximal()) {
    out << "single_device[device_id=" << mesh.devices.devices[0] << ']';
    return;
  }
  out << "mesh[";
  for (size_t i = 0; i < mesh.names.size(); ++i) {
    if (i != 0) out << ',';
    PrintAxisName(out, context.str(mesh.names[i]));
    out << '=' << mesh.devices.dims[i];
  }
  out << ']';
  if (mesh.names.empty() || mesh.devices.iota.IsIdentity()) return;
  out << ", device_ids=(";
  if (mesh.devices.is_iota()) {
    PrintIotaTileAssignment(out, mesh.devices.iota);
  } else {
    PrintInts(out, mesh.devices.devices);
  }
  out << ')';
}

void PrintAxes(TextWriter& out, const Context& context, const Mesh& mesh, absl::Span<const AxisRef> axes,
               std::string_view separator) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (i != 0) out << separator;
    PrintAxisName(out, context.str(mesh.names[static_cast<size_t>(axes[i].axis)]));
    if (!axes[i].whole()) out << ":(" << axes[i].pre_size << ')' << axes[i].size;
  }
}

void EncodeList(absl::Span<const int64_t> values, std::vector<int64_t>* list) {
  list->push_back(static_cast<int64_t>(values.size()));
  list->insert(list->end(), values.begin(), values.end());
}

std::vector<int64_t> DecodeList(absl::Span<const int64_t> list, size_t* at) {
  const auto n = static_cast<size_t>(list[(*at)++]);
  const absl::Span<const int64_t> values = list.subspan(*at, n);
  *at += n;
  return {values.begin(), values.end()};
}

void EncodeIotaTileAssignment(const IotaTileAssignment& order, std::vector<int64_t>* list) {
  EncodeList(order.reshape, list);
  list->insert(list->end(), order.perm.begin(), order.perm.end());
}

IotaTileAssignment DecodeIotaTileAssignment(absl::Span<const int64_t> list, size_t* at) {
  IotaTileAssignment order;
  order.reshape = DecodeList(list, at);
  const absl::Span<const int64_t> perm = list.subspan(*at, order.reshape.size());
  order.perm.assign(perm.begin(), perm.end());
  *at += perm.size();
  return order;
}

void EncodeAxes(absl::Span<const AxisRef> axes, std::vector<int64_t>* list) {
  list->push_back(static_cast<int64_t>(axes.size()));
  for (const AxisRef& ref : axes) list->insert(list->end(), {ref.axis, ref.pre_size, ref.size});
}

std::vector<AxisRef> DecodeAxes(absl::Span<const int64_t> list, size_t* at) {
  std::vector<AxisRef> axes(static_cast<size_t>(list[(*at)++]));
  for (AxisRef& ref : axes) {
    ref = {list[*at], list[*at + 1], list[*at + 2]};
    *at += 3;
  }
  return axes;
}

void EncodeMesh(const Mesh& mesh, std::vector<int64_t>* list) {
  list->push_back(mesh.rank());
  for (size_t i = 0; i < mesh.names.size(); ++i) {
    list->push_back(mesh.names[i].value);
    list->push_back(mesh.devices.dims[i]);
  }
  if (mesh.devices.is_iota()) {
    list->push_back(mesh.devices.iota.IsIdentity() ? 0 : 1);
    if (!mesh.devices.iota.IsIdentity()) EncodeIotaTileAssignment(mesh.devices.iota, list);
  } else {
    list->push_back(2);
    EncodeList(mesh.devices.devices, list);
  }
}

Mesh DecodeMesh(absl::Span<const int64_t> list, size_t* at) {
  Mesh mesh;
  const auto rank = static_cast<size_t>(list[(*at)++]);
  for (size_t i = 0; i < rank; ++i) {
    mesh.names.push_back(StringId(static_cast<uint32_t>(list[(*at)++])));
    mesh.devices.dims.push_back(list[(*at)++]);
  }
  switch (list[(*at)++]) {
    case 0:
      mesh.devices.iota = {{DeviceCount(mesh.devices.dims).value_or(0)}, {0}};
      break;
    case 1:
      mesh.devices.iota = DecodeIotaTileAssignment(list, at);
      break;
    default:
      mesh.devices.devices = DecodeList(list, at);
  }
  return mesh;
}

}  // namespace hlokit
