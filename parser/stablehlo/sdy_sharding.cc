// SPDX-License-Identifier: Apache-2.0
#include "parser/stablehlo/sdy_sharding.h"

#include <algorithm>

#include "absl/status/status.h"
#include "ir/core/str_cat.h"
#include "ir/sharding/reduction_note.h"
#include "ir/sharding/sharding.h"

namespace hlokit::stablehlo {
namespace {

absl::Status Malformed(std::string_view what) { return absl::InvalidArgumentError(StrCat("has a malformed ", what)); }

// An axis of a mesh, or the part of one of size `size` after a major part of size `major`.
struct Axis {
  size_t axis;
  int64_t major = 1;
  int64_t size = 0;
};

// {"x", "y":(2)4, ?}p1
bool ReadAxes(SdyCursor* in, const SdyMesh& mesh, std::vector<Axis>* axes) {
  if (!in->Eat("{")) return false;
  bool first = true;
  while (!in->Eat("}")) {
    if (!first && !in->Eat(",")) return false;
    first = false;
    if (in->Eat("?")) {  // the last one
      if (!in->Eat("}")) return false;
      break;
    }
    std::string name;
    if (!in->Quoted(&name)) return false;
    Axis axis{0, 1, 0};
    while (axis.axis < mesh.axes.size() && mesh.axes[axis.axis].first != name) ++axis.axis;
    if (axis.axis == mesh.axes.size()) return false;
    axis.size = mesh.axes[axis.axis].second;
    if (in->Eat(":")) {
      if (!in->Eat("(") || !in->Number(&axis.major) || !in->Eat(")") || !in->Number(&axis.size)) return false;
      if (axis.major < 1 || axis.size < 1 || mesh.axes[axis.axis].second % axis.major != 0 ||
          mesh.axes[axis.axis].second / axis.major % axis.size != 0) {
        return false;
      }
    }
    axes->push_back(axis);
  }
  int64_t priority = 0;
  return !in->Eat("p") || in->Number(&priority);
}

// Axes, or parts of one, that several dimensions have; `used` has those of each axis of the mesh so far.
bool Overlap(const std::vector<Axis>& axes, std::vector<std::vector<Axis>>* used) {
  for (const Axis& axis : axes) {
    for (const Axis& other : (*used)[axis.axis]) {
      const bool same = axis.major == other.major;
      if (same || (axis.major < other.major * other.size && other.major < axis.major * axis.size)) return true;
    }
    (*used)[axis.axis].push_back(axis);
  }
  return false;
}

// The devices of a sharding after its tiles: those of the mesh in the order `order` of its parts, of which there are
// `total`. Those that are listed one by one count into the budget.
absl::StatusOr<std::string> DevicesText(const SdyMesh& mesh, const std::vector<Axis>& parts,
                                        const std::vector<size_t>& order, int64_t total, int64_t* budget) {
  std::string text;
  if (!mesh.devices.empty()) {
    *budget -= total;
    if (*budget < 0) return absl::InvalidArgumentError("has a sharding that lists too many devices");
    std::vector<int64_t> stride(parts.size(), 1);
    for (size_t p = parts.size(); p-- > 1;) stride[p - 1] = stride[p] * parts[p].size;
    for (int64_t i = 0; i < total; ++i) {
      int64_t left = i, at = 0;
      for (size_t k = order.size(); k-- > 0;) {
        at += left % parts[order[k]].size * stride[order[k]];
        left /= parts[order[k]].size;
      }
      StrAppend(&text, i == 0 ? "" : ",", mesh.devices[static_cast<size_t>(at)]);
    }
  } else if (std::is_sorted(order.begin(), order.end())) {
    StrAppend(&text, "<=[", total, "]");
  } else {
    // Parts that stay together are one dimension.
    std::vector<std::vector<size_t>> runs;
    for (size_t p : order) {
      if (runs.empty() || runs.back().back() + 1 != p) runs.emplace_back();
      runs.back().push_back(p);
    }
    std::vector<size_t> by_position(runs.size());
    for (size_t i = 0; i < runs.size(); ++i) by_position[i] = i;
    std::sort(by_position.begin(), by_position.end(), [&](size_t a, size_t b) { return runs[a][0] < runs[b][0]; });
    std::vector<size_t> place(runs.size());
    std::string sizes, permutation;
    for (size_t i = 0; i < by_position.size(); ++i) {
      place[by_position[i]] = i;
      int64_t size = 1;
      for (size_t p : runs[by_position[i]]) size *= parts[p].size;
      StrAppend(&sizes, i == 0 ? "" : ",", size);
    }
    for (size_t i = 0; i < runs.size(); ++i) StrAppend(&permutation, i == 0 ? "" : ",", place[i]);
    StrAppend(&text, "<=[", sizes, "]T(", permutation, ")");
  }
  return text;
}

// The text of a sharding whose dimensions have these axes; the values of devices along the `unreduced` ones are parts
// that `reduction` combines. Devices that are listed one by one count into the budget.
absl::StatusOr<std::string> TextOf(const SdyMesh& mesh, std::vector<std::vector<Axis>> dims,
                                   const std::vector<Axis>& unreduced, ReductionOp reduction, int64_t* budget) {
  if (mesh.axes.empty()) {
    return mesh.devices.size() == 1 ? StrCat("{maximal device=", mesh.devices[0], "}") : "{replicated}";
  }
  const size_t rank = dims.size();
  dims.push_back(unreduced);  // as one more dimension
  // The parts that the axes are cut into, major to minor.
  std::vector<Axis> parts;
  for (size_t a = 0; a < mesh.axes.size(); ++a) {
    std::vector<int64_t> cuts = {1, mesh.axes[a].second};
    for (const auto& dim : dims) {
      for (const Axis& axis : dim) {
        if (axis.axis == a) cuts.insert(cuts.end(), {axis.major, axis.major * axis.size});
      }
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (cuts[i + 1] % cuts[i] != 0)
        return absl::InvalidArgumentError("has parts of an axis that do not fit together");
      parts.push_back({a, cuts[i], cuts[i + 1] / cuts[i]});
    }
    if (cuts.size() == 1) parts.push_back({a, 1, 1});
  }
  std::vector<size_t> order;
  std::vector<uint8_t> used(parts.size(), 0);
  std::string tiles;
  bool sharded = false, has_parts = false;
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t count = 1;
    for (const Axis& axis : dims[d]) {
      count *= axis.size;
      for (size_t p = 0; p < parts.size(); ++p) {
        const bool inside = parts[p].axis == axis.axis && parts[p].major >= axis.major &&
                            parts[p].major * parts[p].size <= axis.major * axis.size;
        if (!inside || used[p] != 0) continue;
        used[p] = 1;
        order.push_back(p);
      }
    }
    (d < rank ? sharded : has_parts) |= count > 1;
    if (d < rank || count > 1) StrAppend(&tiles, tiles.empty() ? "" : ",", count);
  }
  if (!sharded && !has_parts) return std::string("{replicated}");
  int64_t rest = 1, total = 1;
  for (size_t p = 0; p < parts.size(); ++p) {
    total *= parts[p].size;
    if (used[p] != 0) continue;
    rest *= parts[p].size;
    order.push_back(p);
  }
  const bool is_sum = reduction == ReductionOp::kSum;
  if (!sharded && rest == 1) {
    return StrCat("{unreduced", is_sum ? "" : "=", is_sum ? "" : kReductionOpTexts[static_cast<size_t>(reduction)],
                  "}");
  }
  std::string text = StrCat("{devices=[", tiles, rest > 1 ? StrCat(",", rest) : "", "]");
  absl::StatusOr<std::string> devices = DevicesText(mesh, parts, order, total, budget);
  if (!devices.ok()) return devices.status();
  text += *devices;
  if (has_parts) {
    StrAppend(&text, " last_tile_dims={unreduced", rest > 1 ? ", replicated}" : "}");
    if (is_sum) return text + "}";
    const std::string_view name = kReductionNames[static_cast<size_t>(reduction)];
    return StrCat(text, " metadata={op_type=\"", kReductionNote, "\" op_name=\"", name, "\"}}");
  }
  return text + (rest > 1 ? " last_tile_dim_replicate}" : "}");
}

// <@mesh, [{"x"}, {}], replicated={"y"}>
absl::StatusOr<std::string> ReadOne(SdyCursor* in, const SdyMeshes& meshes, int64_t* budget) {
  SdyMesh mesh;
  if (!in->Eat("<")) return Malformed("sharding of the sdy dialect");
  if (in->Eat("@")) {
    const std::string name(in->Name());
    if (name.empty()) return Malformed("sharding of the sdy dialect");
    const auto found = meshes.find(name);
    if (found == meshes.end()) return absl::InvalidArgumentError(StrCat("has a sharding by an unknown mesh @", name));
    mesh = found->second;
  } else if (!in->Eat("mesh") || !in->Eat("<")) {
    return Malformed("sharding of the sdy dialect");
  } else if (absl::Status status = ReadSdyMesh(*in, &mesh); !status.ok()) {
    return status;
  }
  std::vector<std::vector<Axis>> dims, used(mesh.axes.size());
  const absl::Status overlap = absl::InvalidArgumentError("has an axis that is used twice");
  if (!in->Eat(",") || !in->Eat("[")) return Malformed("sharding of the sdy dialect");
  if (!in->Eat("]")) {
    do {
      dims.emplace_back();
      if (!ReadAxes(in, mesh, &dims.back())) return Malformed("sharding of the sdy dialect");
      if (Overlap(dims.back(), &used)) return overlap;
    } while (in->Eat(","));
    if (!in->Eat("]")) return Malformed("sharding of the sdy dialect");
  }
  std::vector<Axis> unreduced;
  ReductionOp reduction = ReductionOp::kSum;
  while (in->Eat(",")) {
    std::vector<Axis> axes;
    const bool is_unreduced = in->Eat("unreduced");
    if ((!is_unreduced && !in->Eat("replicated")) || !in->Eat("=")) return Malformed("sharding of the sdy dialect");
    if (is_unreduced && in->Eat("max")) reduction = ReductionOp::kMax;
    if (is_unreduced && in->Eat("min")) reduction = ReductionOp::kMin;
    if (!ReadAxes(in, mesh, &axes)) return Malformed("sharding of the sdy dialect");
    if (Overlap(axes, &used)) return overlap;
    if (is_unreduced) unreduced.insert(unreduced.end(), axes.begin(), axes.end());
  }
  if (!in->Eat(">")) return Malformed("sharding of the sdy dialect");
  return TextOf(mesh, std::move(dims), unreduced, reduction, budget);
}

}  // namespace

absl::StatusOr<SdyMesh> ReadSdyMeshText(std::string_view text) {
  SdyCursor in(text);
  SdyMesh mesh;
  if (!in.SkipTo('<') || !in.Eat("<")) return Malformed("mesh");
  if (absl::Status status = ReadSdyMesh(in, &mesh); !status.ok()) return status;
  return mesh;
}

absl::StatusOr<SdyMesh> ReadStablehloMesh(const mlir::NodeTable& nodes, mlir::NodeId mesh) {
  SdyMesh result;
  if (!mesh.valid() || nodes.kind(mesh) != mlir::NodeKind::kFields) return Malformed("mesh");
  const mlir::NodeId axes = nodes.Entry(mesh, "axes"), ids = nodes.Entry(mesh, "device_ids");
  if (!axes.valid() || nodes.kind(axes) != mlir::NodeKind::kArray) return Malformed("mesh");
  for (mlir::NodeId axis : nodes.children(axes)) {
    const bool is_axis = nodes.kind(axis) == mlir::NodeKind::kFields || nodes.kind(axis) == mlir::NodeKind::kDictionary;
    const mlir::NodeId name = is_axis ? nodes.Entry(axis, "name") : mlir::NodeId();
    const mlir::NodeId size = is_axis ? nodes.Entry(axis, "size") : mlir::NodeId();
    if (!name.valid() || !size.valid() || nodes.kind(name) != mlir::NodeKind::kString) return Malformed("mesh");
    result.axes.emplace_back(std::string(nodes.text(name)), nodes.IntegerValue(size).value_or(0));
  }
  if (ids.valid()) {
    const std::optional<std::vector<int64_t>> list = nodes.Integers(ids);
    if (!list) return Malformed("mesh");
    result.devices = *list;
  }
  if (absl::Status status = CheckSdyMesh(&result); !status.ok()) return status;
  return result;
}

bool ReadSdySubAxis(std::string_view text, int64_t* before, int64_t* size) {
  SdyCursor in(text);
  return in.Eat("(") && in.Number(before) && in.Eat(")") && in.Number(size) && in.rest().empty();
}

absl::StatusOr<std::string> HloShardingOf(std::string_view sharding, const SdyMeshes& meshes, int64_t* budget) {
  SdyCursor in(sharding);
  const bool several = sharding.find("sharding_per_value") != std::string_view::npos;
  if (!in.SkipTo('<')) return Malformed("sharding of the sdy dialect");
  if (!several) return ReadOne(&in, meshes, budget);
  absl::StatusOr<std::vector<std::string>> each = HloShardingsOf(sharding, meshes, budget);
  if (!each.ok()) return each.status();
  if (each->size() == 1) return each->front();
  std::string all;
  for (const std::string& one : *each) StrAppend(&all, all.empty() ? "" : ", ", one);
  return StrCat("{", all, "}");
}

absl::StatusOr<std::vector<std::string>> HloShardingsOf(std::string_view shardings, const SdyMeshes& meshes,
                                                        int64_t* budget) {
  SdyCursor in(shardings);
  if (!in.SkipTo('<') || !in.Eat("<") || !in.Eat("[")) return Malformed("sharding of the sdy dialect");
  std::vector<std::string> all;
  if (in.Eat("]")) return all;
  do {
    absl::StatusOr<std::string> one = ReadOne(&in, meshes, budget);
    if (!one.ok()) return one.status();
    all.push_back(*std::move(one));
  } while (in.Eat(","));
  return all;
}

std::vector<std::string> PartsOfShardings(std::string_view shardings) {
  std::vector<std::string> parts;
  constexpr std::string_view kBegin = "<[";
  const size_t begin = shardings.find(kBegin);
  if (begin == shardings.npos) return parts;
  int64_t depth = 0;
  bool quoted = false;
  for (size_t i = begin + kBegin.size(), part = i; i < shardings.size(); ++i) {
    const char c = shardings[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '<' && depth++ == 0) part = i;
    if (c == '>' && --depth == 0) parts.emplace_back(shardings.substr(part, i + 1 - part));
    if (depth < 0) break;  // the end of the list
  }
  return parts;
}

bool HasOpenDimension(std::string_view sharding) {
  bool quoted = false;
  for (const char c : sharding) {
    if (c == '"') quoted = !quoted;
    if (c == '?' && !quoted) return sharding.starts_with("#sdy.");
  }
  return false;
}

}  // namespace hlokit::stablehlo
