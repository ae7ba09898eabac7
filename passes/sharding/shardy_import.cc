// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/shardy_import.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/instruction_queries.h"
#include "ir/sharding/sharding.h"
#include "ir/sharding/tiling.h"
#include "ir/text/frontend_attributes.h"
#include "passes/core/pass_row.h"
#include "passes/sharding/manual_region.h"
#include "passes/sharding/sdy_text.h"
#include "passes/sharding/shardy_importer.h"

namespace hlokit::sharding {
namespace {

constexpr std::string_view kResult = "xla.sdy.FuncResultSharding";
constexpr std::string_view kGroup = "xla.sdy.ShardingGroup";
constexpr std::string_view kBarrier = "xla.sdy.PropagationBarrier";

bool IsConversion(std::string_view target) { return target == kToLocal || target == kToGlobal; }

bool IsMark(std::string_view target) {
  return IsConversion(target) || target == kResult || target == kGroup || target == kBarrier;
}

}  // namespace

bool RegionOrder::operator()(const ManualRegion& a, const ManualRegion& b) const {
  if (a.all != b.all) return b.all;
  if (a.device_count != b.device_count) return a.device_count < b.device_count;
  if (a.order != b.order) return a.order < b.order;
  return std::lexicographical_compare(a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end(),
                                      [](const DeviceAxis& x, const DeviceAxis& y) {
                                        return x.stride != y.stride ? x.stride < y.stride : x.size < y.size;
                                      });
}

bool ShardyImporter::IsNeeded() const {
  for (Computation c : module_.computations()) {
    for (Instruction i : c.instructions()) {
      const std::string_view target = CustomCallTargetOf(i);
      if (IsMark(target) || FindFrontendAttribute(i, kSdySharding).valid()) return true;
      if (target != "Sharding" || !i.has(Attr::kSharding)) continue;
      for (const Sharding::Run& run : DecodeSharding(module_.context(), AttrReader(i).list_id(Attr::kSharding)).runs) {
        for (const DimSharding& dim : run.leaf.dims) {
          if (dim.open) return true;
        }
      }
    }
  }
  return false;
}

OpenShardings ShardyImporter::FromSdy(Instruction i, std::string_view key, absl::Span<const Shape> shapes) {
  const StringId id = FindFrontendAttribute(i, key);
  // An operation without results has a sharding all the same, which divides no value.
  if (!id.valid() || shapes.empty()) return std::optional<std::vector<OpenSharding>>();
  std::optional<std::vector<SdySharding>> parsed = ParseSdyShardings(module_.context().str(id), meshes_, shapes);
  // In a header without meshes, as tests of single passes have it, the attribute names nothing.
  if (!parsed && meshes_.empty()) return std::optional<std::vector<OpenSharding>>();
  if (!parsed) {
    return Error(i, StrCat("the attribute ", key, "=", std::string(module_.context().str(id)), " is no sharding of ",
                           Counted(shapes.size(), "value"), " of these ranks over a mesh of the header"));
  }
  std::vector<OpenSharding> shardings;
  for (SdySharding& from : *parsed) {
    OpenSharding& to = shardings.emplace_back();
    to.tiling = std::move(from.tiling);
    to.tiling.Normalize();
    if (absl::Status status = CheckDevices(i, to.tiling); !status.ok()) return status;
    for (size_t d = 0; d < from.open.size(); ++d) {
      if (from.open[d]) to.open.push_back(static_cast<int64_t>(d));
    }
  }
  return std::optional(std::move(shardings));
}

OpenShardings ShardyImporter::FromAttribute(Instruction i) {
  if (!i.has(Attr::kSharding)) return std::optional<std::vector<OpenSharding>>();
  const std::vector<Shape> shapes = Leaves(i.shape());
  const ListId id = NormalizeForShape(&module_.context(), AttrReader(i).list_id(Attr::kSharding), i.shape());
  std::vector<OpenSharding> shardings;
  for (const Sharding::Run& run : DecodeSharding(module_.context(), id).runs) {
    for (int64_t n = 0; n < run.count && shardings.size() < shapes.size(); ++n) {
      const Shape shape = shapes[shardings.size()];
      std::optional<Tiling> tiling = TilingOf(run.leaf, shape.rank());
      if (!tiling) return Error(i, "the sharding has too many devices to be listed");
      OpenSharding& to = shardings.emplace_back();
      to.tiling = *std::move(tiling);
      if (absl::Status status = CheckDevices(i, to.tiling); !status.ok()) return status;
      for (size_t d = 0; d < run.leaf.dims.size(); ++d) {
        if (run.leaf.dims[d].open) to.open.push_back(static_cast<int64_t>(d));
      }
    }
  }
  if (shardings.size() != shapes.size()) return std::optional<std::vector<OpenSharding>>();
  return std::optional(std::move(shardings));
}

void ShardyImporter::SetSharding(InstructionId id, absl::Span<const Tiling> leaves) {
  Context& context = module_.context();
  const Shape shape = module_.instruction(id).shape();
  std::vector<ListId> ids;
  for (const Tiling& leaf : leaves) ids.push_back(EncodeLeaf(&context, LeafOf(leaf)));
  const ListId sharding = shape.IsTuple() ? EncodeTupleSharding(&context, ids) : ids[0];
  if (module_.instruction(id).payload(Attr::kSharding) == sharding.value) return;
  module_.SetAttr(id, Attr::kSharding, sharding.value);
  ++count_;
}

void ShardyImporter::SetOpen(InstructionId id, absl::Span<const int64_t> open) {
  if (open.empty()) return;
  std::string config = "unspecified_dims=[";
  for (size_t k = 0; k < open.size(); ++k) StrAppend(&config, k == 0 ? "" : ",", open[k]);
  config += ']';
  module_.SetAttr(id, Attr::kBackendConfig, module_.context().strings.Intern(config).value);
}

void ShardyImporter::DropSdy(Instruction i, std::string_view key) {
  if (!FindFrontendAttribute(i, key).valid()) return;
  const ListId rest =
      WithoutFrontendAttribute(&module_.context(), AttrReader(i).list_id(Attr::kFrontendAttributes), key);
  if (rest.valid() && !module_.context().list(rest).empty()) {
    module_.SetAttr(i.id(), Attr::kFrontendAttributes, rest.value);
  } else {
    module_.RemoveAttr(i.id(), Attr::kFrontendAttributes);
  }
}

absl::StatusOr<ManualRegion> ShardyImporter::Within(Instruction i, const ManualRegion& outer,
                                                    const ManualRegion& inner) const {
  std::optional<ManualRegion> both = Union(outer, inner);
  if (!both) return Error(i, "a manual computation within one over a mesh with other devices");
  return *std::move(both);
}

// A computation that is called in several regions becomes one for each. A clone calls what its origin called when it
// was made, which may be clones for another region.
ComputationId ShardyImporter::InRegionOf(ComputationId callee, const ManualRegion* region) {
  const auto [at, added] = regions_.try_emplace(callee.value, region);
  if (added) {
    order_.push_back(callee);
    clones_.try_emplace({callee.value, region}, callee);
    return callee;
  }
  if (at->second == region) return callee;
  const auto made = origins_.find(callee.value);
  const ComputationId origin = made == origins_.end() ? callee : made->second;
  if (HasTooManyClones()) return callee;
  const auto [known, is_new] = clones_.try_emplace({origin.value, region}, origin);
  if (!is_new) return known->second;
  const ComputationId clone = module_.CloneComputation(origin);
  known->second = clone;
  origins_.emplace(clone.value, origin);
  regions_.emplace(clone.value, region);
  order_.push_back(clone);
  return clone;
}

absl::Status ShardyImporter::VisitCaller(Instruction i, const ManualRegion& region) {
  ManualRegion inner = region;
  if (i.opcode() == Opcode::kCall) {
    const absl::StatusOr<ManualRegion> axes = AxesOfCall(i);
    if (!axes.ok()) return axes.status();
    absl::StatusOr<ManualRegion> both = Within(i, region, *axes);
    if (!both.ok()) return both.status();
    inner = *std::move(both);
  }
  const ManualRegion* region_of_callees = &*interned_.insert(std::move(inner)).first;
  module_.ReplaceCallees(i.id(), [&](ComputationId callee) { return InRegionOf(callee, region_of_callees); });
  if (HasTooManyClones()) return Error(i, "the computations are called in too many manual regions");
  return absl::OkStatus();
}

absl::Status ShardyImporter::FindRegions() {
  regions_[module_.entry().id().value] = &*interned_.insert(ManualRegion()).first;
  order_ = {module_.entry().id()};
  for (size_t n = 0; n < order_.size(); ++n) {
    const ComputationId c = order_[n];
    const ManualRegion& region = *regions_[c.value];
    std::vector<InstructionId> callers;
    for (Instruction i : module_.computation(c).instructions()) {
      if (HasTrait(i.opcode(), kControlFlow)) callers.push_back(i.id());
      if (!IsConversion(CustomCallTargetOf(i))) continue;
      absl::StatusOr<ManualRegion> axes = AxesOfConversion(i);
      if (!axes.ok()) return axes.status();
      axes_of_[i.id().value] = *std::move(axes);
    }
    for (InstructionId id : callers) {
      if (absl::Status status = VisitCaller(module_.instruction(id), region); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

InstructionId ShardyImporter::AddCall(Builder* b, std::string_view target, InstructionId operand, Shape shape,
                                      const Tiling& tiling, absl::Span<const int64_t> open) {
  const InstructionId id =
      b->WithName("custom-call")
          .Make(Opcode::kCustomCall, shape, {operand}, {b->String(Attr::kCustomCallTarget, target)});
  SetSharding(id, {tiling});
  SetOpen(id, open);
  return id;
}

absl::Status ShardyImporter::Rewrite(Computation c, const ManualRegion& region) {
  std::vector<InstructionId> all;
  for (Instruction i : c.instructions()) all.push_back(i.id());
  for (const InstructionId id : all) {
    if (!module_.record(id).parent.valid()) continue;  // replaced with another
    const Instruction i = module_.instruction(id);
    const std::string_view target = CustomCallTargetOf(i);
    absl::Status status;
    if (target == kToLocal) {
      status = ConvertToLocal(i, region);
    } else if (target == kToGlobal) {
      status = ConvertToGlobal(i, region);
    } else if (target == kResult && i.operand_count() == 1) {
      status = ReadResult(i, region);
    } else if (target == kGroup) {
      ReadGroup(i);
    } else if (target == kBarrier && i.operand_count() == 1) {
      status = ReadBarrier(i);
    } else if (target == "Sharding" && i.operand_count() == 1) {
      status = ReadConstraint(i, region);
    } else {
      status = ReadSharding(i, region);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ShardyImporter::Run() {
  if (!module_.entry().valid() || !IsNeeded()) return count_;
  if (module_.header().num_partitions > 1) devices_ = module_.header().num_partitions;
  meshes_ = SdyMeshesOf(module_);
  if (absl::Status status = FindRegions(); !status.ok()) return status;
  for (const ComputationId c : order_) {
    if (absl::Status status = Rewrite(module_.computation(c), *regions_[c.value]); !status.ok()) return status;
  }
  for (const Computation c : module_.computations()) {
    if (regions_.contains(c.id().value)) continue;
    if (absl::Status status = RemoveMarksOf(c); !status.ok()) return status;
  }
  SetRootSharding();
  return count_;
}

absl::StatusOr<int64_t> ImportShardy(Module& module) { return ShardyImporter(module).Run(); }

}  // namespace hlokit::sharding

namespace hlokit {
namespace {

class ShardyImport : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> read = sharding::ImportShardy(module);
    if (!read.ok()) return read.status();
    if (*read > 0) Count("attributes and custom-calls of Shardy read", *read);
    return *read > 0;
  }
};

}  // namespace

HLOKIT_PASS(ShardyImport) {
  return {
      .name = "shardy-import",
      .category = "sharding",
      .summary = "read what Shardy leaves in HLO, such as the shard_map of JAX",
      .doc =
          "Manual computations become Sharding, SPMDFullToShardShape and SPMDShardToFullShape around the "
          "call of their body, as XLA writes them without Shardy: shardings within a body get its manual "
          "axes, and those of bodies around it. The frontend attribute xla.sdy.sharding becomes the "
          "sharding; dimensions that a constraint leaves open are its unspecified_dims. Groups become "
          "shard_as, barriers ShardBarrierFrom and ShardBarrierTo, and result shardings those of the "
          "root. Priorities are not read. sharding-propagation and spmd-partitioner begin with this.",
      .example = R"(HloModule halves, num_partitions=2, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=2]>}}

xla.sdy.manual_computation_body {
  p = f32[4]{0} parameter(0)
  ROOT shifted = f32[4]{0} collective-permute(p), channel_id=1, source_target_pairs={{0,1},{1,0}}
}

ENTRY main {
  x = f32[8]{0} parameter(0)
  local = f32[4]{0} custom-call(x), custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\"}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"x\"}>"}
  body = f32[4]{0} call(local), to_apply=xla.sdy.manual_computation_body, frontend_attributes={inlineable="false"}
  ROOT whole = f32[8]{0} custom-call(body), custom_call_target="xla.sdy.LocalToGlobalShape", frontend_attributes={xla.sdy.manual_axes="#sdy<manual_axes{\"x\"}>",xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\"}]>]>"}
}
)",
      .preserves = "the program.",
      .create = MakePass<ShardyImport>};
}

}  // namespace hlokit
