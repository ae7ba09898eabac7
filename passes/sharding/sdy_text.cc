// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/sdy_text.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/sharding/sdy_mesh.h"

namespace hlokit::sharding {
namespace {

bool FindMesh(std::string_view meshes, std::string_view name, SdyMesh* mesh) {
  for (const std::string_view quote : {"", "\"", "'"}) {
    const std::string key = StrCat(quote, name, quote, " = ", kSdyMesh);
    for (size_t at = meshes.find(key); at != meshes.npos; at = meshes.find(key, at + 1)) {
      // Not the end of a longer name.
      if (quote.empty() && at > 0 && std::string_view(" ,{").find(meshes[at - 1]) == std::string_view::npos) continue;
      SdyCursor in(meshes.substr(at + key.size()));
      return ReadSdyMesh(in, mesh).ok();
    }
  }
  return false;
}

// Parses `@mesh` or `mesh<["a"=2]>`.
bool ParseMesh(SdyCursor& in, std::string_view meshes, SdyMesh* mesh) {
  if (in.Eat("@")) return FindMesh(meshes, in.Name(), mesh);
  return in.Eat("mesh<") && ReadSdyMesh(in, mesh).ok();
}

// Parses `{"a", "b":(1)2, ?}` after the brace.
bool ParseAxes(SdyCursor& in, const SdyMesh& mesh, AxisList* axes, bool* open) {
  while (!in.Eat("}")) {
    if (in.Eat("?")) {
      *open = true;
      continue;
    }
    std::string name;
    if (!in.Quoted(&name)) return false;
    int64_t minor = mesh.count;
    bool found = false;
    for (const auto& [axis, size] : mesh.axes) {
      minor /= size;
      if (axis != name) continue;
      found = true;
      int64_t pre = 1, part = size;
      if (in.Eat(":(") && (!in.Number(&pre) || !in.Eat(")") || !in.Number(&part))) return false;
      if (pre < 1 || part < 1 || part > size || pre > size / part || size % (pre * part) != 0) return false;
      AppendAxis(axes, {minor * (size / (pre * part)), part});
      break;
    }
    if (!found) return false;
    in.Eat(",");
  }
  return true;
}

bool ParseOne(SdyCursor& in, std::string_view meshes, Shape shape, SdySharding* sharding) {
  SdyMesh mesh;
  if (!ParseMesh(in, meshes, &mesh)) return false;
  Tiling& tiling = sharding->tiling;
  if (mesh.maximal()) {
    tiling.kind = ShardingKind::kMaximal;
    tiling.device = mesh.devices[0];
    sharding->open.assign(static_cast<size_t>(std::max<int64_t>(shape.rank(), 0)), false);
    return in.Eat(",") && in.Eat("[]>");
  }
  tiling.kind = ShardingKind::kTiled;
  tiling.device_count = mesh.count;
  tiling.order = mesh.devices;
  if (!in.Eat(",") || !in.Eat("[")) return false;
  while (!in.Eat("]")) {
    bool open = false;
    if (!in.Eat("{") || !ParseAxes(in, mesh, &tiling.dims.emplace_back(), &open)) return false;
    sharding->open.push_back(open);
    int64_t priority;
    if (in.Eat("p") && !in.Number(&priority)) return false;
    in.Eat(",");
  }
  bool ignored = false;
  while (in.Eat(",")) {
    const bool unreduced = in.Eat("unreduced=");
    if (!unreduced && !in.Eat("replicated=")) return false;
    if (unreduced && in.Eat("max")) tiling.reduction = ReductionOp::kMax;
    if (unreduced && in.Eat("min")) tiling.reduction = ReductionOp::kMin;
    AxisList* const list = unreduced ? &tiling.unreduced : &tiling.replicated;
    if (!in.Eat("{") || !ParseAxes(in, mesh, list, &ignored)) return false;
  }
  if (!in.Eat(">") || tiling.rank() != shape.rank()) return false;
  // The axes must belong to one factorization, each used once.
  std::vector<const AxisList*> lists = {&tiling.unreduced, &tiling.replicated};
  for (const AxisList& dim : tiling.dims) lists.push_back(&dim);
  return Complement(lists, tiling.device_count).has_value();
}

}  // namespace

std::optional<std::vector<SdySharding>> ParseSdyShardings(std::string_view text, std::string_view meshes,
                                                          absl::Span<const Shape> shapes) {
  SdyCursor in(text);
  std::vector<SdySharding> shardings;
  if (in.Eat("#sdy.sharding<")) {
    if (shapes.size() != 1 || !ParseOne(in, meshes, shapes[0], &shardings.emplace_back())) return std::nullopt;
    return shardings;
  }
  if (!in.Eat("#sdy.sharding_per_value<[")) return std::nullopt;
  while (!in.Eat("]")) {
    if (shardings.size() == shapes.size() || !in.Eat("<")) return std::nullopt;
    const Shape shape = shapes[shardings.size()];
    if (!ParseOne(in, meshes, shape, &shardings.emplace_back())) return std::nullopt;
    in.Eat(",");
  }
  if (shardings.size() != shapes.size()) return std::nullopt;
  return shardings;
}

std::optional<SdyManualAxes> ParseSdyManualAxes(std::string_view manual_axes, std::string_view shardings,
                                                std::string_view meshes) {
  SdyMesh mesh;
  SdyCursor in(shardings);
  if (in.Eat("#sdy.sharding_per_value<[<")) {
    if (!ParseMesh(in, meshes, &mesh)) return std::nullopt;
  } else {
    // Of no values: the module has one mesh.
    const size_t first = meshes.find(kSdyMesh);
    if (first == meshes.npos) return std::nullopt;
    SdyCursor of_module(meshes.substr(first + kSdyMesh.size()));
    if (!ReadSdyMesh(of_module, &mesh).ok()) return std::nullopt;
  }
  const size_t brace = manual_axes.find('{');
  if (brace == manual_axes.npos) return std::nullopt;
  SdyManualAxes manual{{}, mesh.count, mesh.devices};
  SdyCursor axes(manual_axes.substr(brace + 1));
  AxisList named;
  bool open = false;
  if (!ParseAxes(axes, mesh, &named, &open) || open) return std::nullopt;
  std::sort(named.begin(), named.end(), [](const DeviceAxis& a, const DeviceAxis& b) { return a.stride > b.stride; });
  AppendAxes(&manual.axes, named);
  return manual;
}

size_t CountSdyAxes(std::string_view text) {
  size_t quotes = 0;
  for (const char c : text) quotes += c == '"' ? 1 : 0;
  return quotes / 2;
}

}  // namespace hlokit::sharding
