// SPDX-License-Identifier: Apache-2.0
// The conversions at the borders of manual computations, and the axes that they make manual.
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ir/builder/builder.h"
#include "ir/core/str_cat.h"
#include "ir/graph/instruction_queries.h"
#include "ir/sharding/tiling.h"
#include "ir/text/frontend_attributes.h"
#include "passes/annotations/annotations.h"
#include "passes/sharding/manual_region.h"
#include "passes/sharding/sdy_text.h"
#include "passes/sharding/shardy_importer.h"

namespace hlokit::sharding {
namespace {

// Returns the shape that operand `k` of a conversion is converted to.
Shape ResultOf(Instruction i, int64_t k) { return i.shape().IsTuple() ? i.shape().element(k) : i.shape(); }

}  // namespace

absl::StatusOr<ManualRegion> ShardyImporter::AxesOfConversion(Instruction conversion) {
  const bool local = CustomCallTargetOf(conversion) == kToLocal;
  const StringId axes = FindFrontendAttribute(conversion, "xla.sdy.manual_axes");
  if (axes.valid()) {
    const StringId shardings =
        FindFrontendAttribute(conversion, local ? "xla.sdy.in_shardings" : "xla.sdy.out_shardings");
    const std::optional<SdyManualAxes> parsed = ParseSdyManualAxes(
        module_.context().str(axes), shardings.valid() ? module_.context().str(shardings) : "", meshes_);
    if (!parsed) return Error(conversion, "the attribute xla.sdy.manual_axes names no axes of a mesh of the header");
    return ManualRegion{parsed->axes, parsed->device_count, parsed->order};
  }
  // The sharding of the local value names them.
  Instruction value = conversion;
  int64_t leaf = 0;
  if (!local) {
    if (conversion.operand_count() == 0) return ManualRegion();
    value = conversion.operand(0);
    if (!value.has(Attr::kSharding) && value.opcode() == Opcode::kGetTupleElement) {
      const int64_t index = value.int_attr(Attr::kIndex);
      value = value.operand(0);
      for (int64_t k = 0; k < index; ++k) leaf += static_cast<int64_t>(Leaves(value.shape().element(k)).size());
    }
  }
  const OpenShardings shardings = FromAttribute(value);
  if (!shardings.ok()) return shardings.status();
  if (!*shardings || leaf >= static_cast<int64_t>((*shardings)->size())) {
    return Error(conversion, "neither xla.sdy.manual_axes nor the sharding of the local value says what is manual");
  }
  const Tiling& tiling = (**shardings)[ToSize(leaf)].tiling;
  if (tiling.kind == ShardingKind::kManual) return ManualRegion::All();
  if (!tiling.tiled()) return ManualRegion();
  return ManualRegion{tiling.manual, tiling.device_count, tiling.order};
}

absl::StatusOr<ManualRegion> ShardyImporter::AxesOfCall(Instruction call) {
  for (Instruction operand : call.operands()) {
    if (operand.opcode() == Opcode::kGetTupleElement) operand = operand.operand(0);
    if (CustomCallTargetOf(operand) == kToLocal) return AxesOfConversion(operand);
  }
  for (const Instruction user : call.users()) {
    if (CustomCallTargetOf(user) == kToGlobal) return AxesOfConversion(user);
    if (user.opcode() != Opcode::kGetTupleElement) continue;
    for (const Instruction after : user.users()) {
      if (CustomCallTargetOf(after) == kToGlobal) return AxesOfConversion(after);
    }
  }
  return ManualRegion();
}

void ShardyImporter::ReplaceByElements(Instruction i, absl::Span<const InstructionId> elements) {
  ++count_;
  if (!i.shape().IsTuple()) {
    Replace(module_, i.id(), elements[0]);
    return;
  }
  for (const Instruction user : i.users()) {
    if (user.opcode() != Opcode::kGetTupleElement || user.has(Attr::kControlPredecessors)) continue;
    const InstructionId element = elements[ToSize(user.int_attr(Attr::kIndex))];
    module_.RemoveAttr(user.id(), Attr::kSharding);
    Replace(module_, user.id(), element);
  }
  if (!i.has_users() && !i.is_root()) {
    module_.Erase(i.id());
    return;
  }
  Builder b(&module_, i.id());
  const AnnotationScope scope(&b, {i.id()});
  module_.RemoveAttr(i.id(), Attr::kSharding);
  Replace(module_, i.id(), b.MakeTuple(elements));
}

absl::Status ShardyImporter::CheckConversion(Instruction i) const {
  const int64_t results = i.shape().IsTuple() ? i.shape().tuple_size() : 1;
  if (results != i.operand_count()) {
    return Error(i, StrCat("a conversion of ", Counted(i.operand_count(), "value"),
                           " has another number of results: ", results));
  }
  for (int64_t k = 0; k < results; ++k) {
    const Shape from = i.operand(k).shape(), to = ResultOf(i, k);
    if (from.IsToken() && to.IsToken()) continue;  // of an ordered effect
    if (from.IsArray() && to.IsArray() && from.element_type() == to.element_type() && from.rank() == to.rank()) {
      continue;
    }
    return Error(i, StrCat("operand ", k, " is ", ToString(from, false), " and its result ", ToString(to, false),
                           ": a conversion is of arrays, and keeps the type and rank"));
  }
  return absl::OkStatus();
}

absl::Status ShardyImporter::ConvertToLocal(Instruction i, const ManualRegion& region) {
  if (absl::Status status = CheckConversion(i); !status.ok()) return status;
  const absl::StatusOr<ManualRegion> inner = Within(i, region, axes_of_[i.id().value]);
  if (!inner.ok()) return inner.status();
  std::vector<Shape> shapes;
  for (const Instruction operand : i.operands()) shapes.push_back(operand.shape());
  OpenShardings given = FromSdy(i, "xla.sdy.in_shardings", shapes);
  if (!given.ok()) return given.status();
  Builder b(&module_, i.id());
  const AnnotationScope scope(&b, {i.id()});
  std::vector<InstructionId> parts;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    InstructionId operand = i.operand(k).id();
    if (i.operand(k).shape().IsToken()) {
      parts.push_back(operand);
      continue;
    }
    OpenSharding sharding;
    bool constrained = false;  // by a custom-call Sharding of the text, for this operand
    if (*given) {
      sharding = (**given)[ToSize(k)];
    } else {
      const OpenShardings own = FromAttribute(i.operand(k));
      if (!own.ok()) return own.status();
      if (!*own || (*own)->size() != 1) return Error(i, StrCat("operand ", k, " has no sharding"));
      sharding = (**own)[0];
      if (const auto open = open_.find(operand.value); open != open_.end()) sharding.open = open->second;
      constrained = CustomCallTargetOf(i.operand(k)) == "Sharding" && i.operand(k).users().size() == 1;
    }
    if (inner->IsAll()) sharding.open.clear();
    if (!constrained) {
      const Tiling outer = InRegion(sharding.tiling, shapes[ToSize(k)].rank(), region);
      operand = AddCall(&b, "Sharding", operand, shapes[ToSize(k)], outer, sharding.open);
    }
    const Shape local = ResultOf(i, k);
    parts.push_back(AddCall(&b, "SPMDFullToShardShape", operand, local, InRegion(sharding.tiling, local.rank(), *inner),
                            sharding.open));
  }
  ReplaceByElements(i, parts);
  return absl::OkStatus();
}

absl::Status ShardyImporter::ConvertToGlobal(Instruction i, const ManualRegion& region) {
  if (absl::Status status = CheckConversion(i); !status.ok()) return status;
  const absl::StatusOr<ManualRegion> inner = Within(i, region, axes_of_[i.id().value]);
  if (!inner.ok()) return inner.status();
  const std::vector<Shape> shapes = Leaves(i.shape());
  OpenShardings given = FromSdy(i, "xla.sdy.out_shardings", shapes);
  if (given.ok() && !*given) given = FromAttribute(i);
  if (!given.ok()) return given.status();
  if (!*given) return Error(i, "has no sharding of its results");
  Builder b(&module_, i.id());
  const AnnotationScope scope(&b, {i.id()});
  std::vector<InstructionId> wholes;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    if (i.operand(k).shape().IsToken()) {
      wholes.push_back(i.operand(k).id());
      continue;
    }
    OpenSharding& sharding = (**given)[ToSize(k)];
    if (inner->IsAll()) sharding.open.clear();
    const Shape local = i.operand(k).shape();
    const InstructionId part = AddCall(&b, "Sharding", i.operand(k).id(), local,
                                       InRegion(sharding.tiling, local.rank(), *inner), sharding.open);
    wholes.push_back(AddCall(&b, "SPMDShardToFullShape", part, shapes[ToSize(k)],
                             InRegion(sharding.tiling, shapes[ToSize(k)].rank(), region), sharding.open));
  }
  ReplaceByElements(i, wholes);
  return absl::OkStatus();
}

}  // namespace hlokit::sharding
