// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/shardy_import.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "ir/builder/builder.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/sharding/sharding.h"
#include "ir/sharding/tiling.h"
#include "ir/text/frontend_attributes.h"
#include "passes/annotations/annotations.h"
#include "passes/sharding/manual_region.h"
#include "passes/sharding/sdy_text.h"

namespace hlokit::sharding {
namespace {

constexpr std::string_view kResult = "xla.sdy.FuncResultSharding";
constexpr std::string_view kGroup = "xla.sdy.ShardingGroup";
constexpr std::string_view kBarrier = "xla.sdy.PropagationBarrier";
constexpr std::string_view kSdySharding = "xla.sdy.sharding";

std::string_view CallTarget(Instruction i) {
  return i.opcode() == Opcode::kCustomCall ? i.string_attr(Attr::kCustomCallTarget) : std::string_view();
}

bool IsConversion(std::string_view target) { return target == kToLocal || target == kToGlobal; }

bool IsMark(std::string_view target) {
  return IsConversion(target) || target == kResult || target == kGroup || target == kBarrier;
}

// A sharding of one array, and which of its dimensions propagation may divide further.
struct OpenSharding {
  Tiling tiling;
  std::vector<int64_t> open;
};

using OpenShardings = absl::StatusOr<std::optional<std::vector<OpenSharding>>>;  // by leaf; none: there is no sharding

// Returns the number in a text such as "2 : i32"; -1 without one.
int64_t NumberOf(std::string_view text) {
  int64_t number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

class ShardyImporter {
 public:
  explicit ShardyImporter(Module& module) : module_(module) {}

  absl::StatusOr<int64_t> Run();

 private:
  bool IsNeeded() const;
  absl::Status FindRegions();
  absl::Status VisitCaller(Instruction i, const ManualRegion& region);
  // Returns the axes that a conversion, or the call between two conversions, makes manual; none for other calls.
  absl::StatusOr<ManualRegion> AxesOfConversion(Instruction conversion);
  absl::StatusOr<ManualRegion> AxesOfCall(Instruction call);
  absl::StatusOr<ManualRegion> Within(Instruction i, const ManualRegion& outer, const ManualRegion& inner) const;
  absl::Status Rewrite(Computation c, const ManualRegion& region);
  absl::Status ConvertToLocal(Instruction i, const ManualRegion& region);
  absl::Status ConvertToGlobal(Instruction i, const ManualRegion& region);
  absl::Status ReadConstraint(Instruction i, const ManualRegion& region);
  absl::Status ReadSharding(Instruction i, const ManualRegion& region);
  absl::Status ReadResult(Instruction i, const ManualRegion& region);
  void ReadGroup(Instruction i);
  void ReadBarrier(Instruction i);
  void SetRootSharding();
  void RemoveMarksOf(Computation c);

  OpenShardings FromSdy(Instruction i, std::string_view key, absl::Span<const Shape> shapes);
  OpenShardings FromAttribute(Instruction i);
  void SetSharding(InstructionId id, absl::Span<const Tiling> leaves);
  void SetOpen(InstructionId id, absl::Span<const int64_t> open);
  void DropSdy(Instruction i, std::string_view key);
  InstructionId AddCall(Builder* b, std::string_view target, InstructionId operand, Shape shape, const Tiling& tiling,
                        absl::Span<const int64_t> open);
  // Replaces an instruction by its elements: get-tuple-elements of it directly.
  void ReplaceByElements(Instruction i, absl::Span<const InstructionId> elements);
  // Returns an error if a sharding is for another number of devices than those before.
  absl::Status CheckDevices(Instruction i, const Tiling& tiling) {
    if (!tiling.tiled()) return absl::OkStatus();
    if (devices_ == 0) devices_ = tiling.device_count;
    if (devices_ == tiling.device_count) return absl::OkStatus();
    return Error(i, StrCat("the sharding is for ", tiling.device_count, " devices, not for ", devices_));
  }
  absl::Status Error(Instruction i, std::string_view text) const {
    return absl::InvalidArgumentError(StrCat(i.name(), ": ", text));
  }

  Module& module_;
  std::string meshes_;
  std::map<uint32_t, ManualRegion> regions_;  // of the computations that control flow reaches
  std::vector<ComputationId> order_;
  absl::flat_hash_map<uint32_t, ManualRegion> axes_of_;       // by conversion: what it makes manual
  absl::flat_hash_map<uint32_t, std::vector<int64_t>> open_;  // by constraint: its open dimensions
  absl::flat_hash_map<uint32_t, Tiling> result_of_;           // by instruction: what a FuncResultSharding said of it
  int64_t devices_ = 0;                                       // of all shardings
  int64_t count_ = 0;
};

bool ShardyImporter::IsNeeded() const {
  for (Computation c : module_.computations()) {
    for (Instruction i : c.instructions()) {
      const std::string_view target = CallTarget(i);
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
  if (!parsed) {
    return Error(i, StrCat("the attribute ", key, "=", std::string(module_.context().str(id)), " is no sharding of ",
                           shapes.size(), shapes.size() == 1 ? " value" : " values",
                           " of these ranks over a mesh of the header"));
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

absl::StatusOr<ManualRegion> ShardyImporter::AxesOfConversion(Instruction conversion) {
  const bool local = CallTarget(conversion) == kToLocal;
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
      leaf = value.int_attr(Attr::kIndex);
      value = value.operand(0);
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
    if (CallTarget(operand) == kToLocal) return AxesOfConversion(operand);
  }
  for (const Instruction user : call.users()) {
    if (CallTarget(user) == kToGlobal) return AxesOfConversion(user);
    if (user.opcode() != Opcode::kGetTupleElement) continue;
    for (const Instruction after : user.users()) {
      if (CallTarget(after) == kToGlobal) return AxesOfConversion(after);
    }
  }
  return ManualRegion();
}

absl::StatusOr<ManualRegion> ShardyImporter::Within(Instruction i, const ManualRegion& outer,
                                                    const ManualRegion& inner) const {
  std::optional<ManualRegion> both = Union(outer, inner);
  if (!both) return Error(i, "a manual computation within one over a mesh with other devices");
  return *std::move(both);
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
  // A computation that is called in two regions becomes two.
  std::map<uint32_t, ComputationId> clones;
  module_.ReplaceCallees(i.id(), [&](ComputationId callee) {
    const auto [at, added] = regions_.try_emplace(callee.value, inner);
    if (added) order_.push_back(callee);
    if (added || at->second == inner) return callee;
    if (const auto found = clones.find(callee.value); found != clones.end()) return found->second;
    const ComputationId clone = module_.CloneComputation(callee);
    regions_[clone.value] = inner;
    order_.push_back(clone);
    return clones[callee.value] = clone;
  });
  return absl::OkStatus();
}

absl::Status ShardyImporter::FindRegions() {
  regions_[module_.entry().id().value] = ManualRegion();
  order_ = {module_.entry().id()};
  for (size_t n = 0; n < order_.size(); ++n) {
    const ComputationId c = order_[n];
    const ManualRegion region = regions_[c.value];
    std::vector<InstructionId> callers;
    for (Instruction i : module_.computation(c).instructions()) {
      if (HasTrait(i.opcode(), kControlFlow)) callers.push_back(i.id());
      if (!IsConversion(CallTarget(i))) continue;
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

absl::Status ShardyImporter::ConvertToLocal(Instruction i, const ManualRegion& region) {
  const absl::StatusOr<ManualRegion> inner = Within(i, region, axes_of_[i.id().value]);
  if (!inner.ok()) return inner.status();
  std::vector<Shape> shapes;
  for (const Instruction operand : i.operands()) shapes.push_back(operand.shape());
  if (shapes.size() != Leaves(i.shape()).size()) return Error(i, "has another number of results than operands");
  OpenShardings given = FromSdy(i, "xla.sdy.in_shardings", shapes);
  if (!given.ok()) return given.status();
  Builder b(&module_, i.id());
  const AnnotationScope scope(&b, {i.id()});
  std::vector<InstructionId> parts;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    InstructionId operand = i.operand(k).id();
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
      constrained = CallTarget(i.operand(k)) == "Sharding" && i.operand(k).users().size() == 1;
    }
    if (inner->IsAll()) sharding.open.clear();
    if (!constrained) {
      const Tiling outer = InRegion(sharding.tiling, shapes[ToSize(k)].rank(), region);
      operand = AddCall(&b, "Sharding", operand, shapes[ToSize(k)], outer, sharding.open);
    }
    const Shape local = i.shape().IsTuple() ? i.shape().element(k) : i.shape();
    parts.push_back(AddCall(&b, "SPMDFullToShardShape", operand, local, InRegion(sharding.tiling, local.rank(), *inner),
                            sharding.open));
  }
  ReplaceByElements(i, parts);
  return absl::OkStatus();
}

absl::Status ShardyImporter::ConvertToGlobal(Instruction i, const ManualRegion& region) {
  const absl::StatusOr<ManualRegion> inner = Within(i, region, axes_of_[i.id().value]);
  if (!inner.ok()) return inner.status();
  const std::vector<Shape> shapes = Leaves(i.shape());
  if (static_cast<int64_t>(shapes.size()) != i.operand_count()) {
    return Error(i, "has another number of results than operands");
  }
  OpenShardings given = FromSdy(i, "xla.sdy.out_shardings", shapes);
  if (given.ok() && !*given) given = FromAttribute(i);
  if (!given.ok()) return given.status();
  if (!*given) return Error(i, "has no sharding of its results");
  Builder b(&module_, i.id());
  const AnnotationScope scope(&b, {i.id()});
  std::vector<InstructionId> wholes;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
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

// A constraint within code for one device says nothing.
absl::Status ShardyImporter::ReadConstraint(Instruction i, const ManualRegion& region) {
  if (region.IsAll() && Compatible(i.shape(), i.operand(0).shape())) {
    module_.RemoveAttr(i.id(), Attr::kSharding);
    Replace(module_, i.id(), i.operand(0).id());
    ++count_;
    return absl::OkStatus();
  }
  OpenShardings given = FromSdy(i, kSdySharding, Leaves(i.shape()));
  if (given.ok() && !*given) given = FromAttribute(i);
  if (!given.ok()) return given.status();
  DropSdy(i, kSdySharding);
  if (!*given) return absl::OkStatus();
  std::vector<Tiling> leaves;
  for (const OpenSharding& leaf : **given) leaves.push_back(InRegion(leaf.tiling, i.shape().rank(), region));
  SetSharding(i.id(), leaves);
  if ((*given)->size() != 1) return absl::OkStatus();
  open_[i.id().value] = (**given)[0].open;
  if (!i.has(Attr::kBackendConfig)) SetOpen(i.id(), (**given)[0].open);
  return absl::OkStatus();
}

absl::Status ShardyImporter::ReadSharding(Instruction i, const ManualRegion& region) {
  const std::vector<Shape> shapes = Leaves(i.shape());
  OpenShardings given = FromSdy(i, kSdySharding, shapes);
  if (!given.ok()) return given.status();
  const bool passes = i.opcode() == Opcode::kCall || i.opcode() == Opcode::kGetTupleElement;
  const bool is_read = given->has_value();
  if (!is_read && (!region.empty() || passes)) given = FromAttribute(i);
  if (!given.ok()) return given.status();
  DropSdy(i, kSdySharding);
  // One that leaves all dimensions open says nothing that the conversions of a manual computation do not.
  if (passes && *given && std::all_of((*given)->begin(), (*given)->end(), [](const OpenSharding& leaf) {
        return !leaf.open.empty() && leaf.tiling.tiles() == 1;
      })) {
    module_.RemoveAttr(i.id(), Attr::kSharding);
    return absl::OkStatus();
  }
  std::vector<Tiling> leaves;
  if (*given && (is_read || !region.empty())) {
    for (size_t k = 0; k < (*given)->size(); ++k) {
      leaves.push_back(InRegion((**given)[k].tiling, shapes[k].rank(), region));
    }
  } else if (region.IsAll() || (!region.empty() && i.operand_count() == 0 && i.opcode() != Opcode::kParameter &&
                                i.opcode() != Opcode::kCall)) {
    for (const Shape shape : shapes) leaves.push_back(InRegion(Tiling(), shape.rank(), region));
  }
  if (!leaves.empty()) SetSharding(i.id(), leaves);
  return absl::OkStatus();
}

// The sharding of a result of the entry goes to the root, if that has none.
absl::Status ShardyImporter::ReadResult(Instruction i, const ManualRegion& region) {
  OpenShardings given = FromSdy(i, kSdySharding, Leaves(i.shape()));
  if (given.ok() && !*given) given = FromAttribute(i);
  if (!given.ok()) return given.status();
  ++count_;
  const InstructionId operand = i.operand(0).id();
  if (*given && (*given)->size() == 1) {
    Builder b(&module_, i.id());
    const AnnotationScope scope(&b, {i.id()});
    const Tiling tiling = InRegion((**given)[0].tiling, i.shape().rank(), region);
    const InstructionId constraint = AddCall(&b, "Sharding", operand, i.shape(), tiling, {});
    if (i.parent().is_entry()) result_of_[constraint.value] = tiling;
    module_.RemoveAttr(i.id(), Attr::kSharding);
    Replace(module_, i.id(), constraint);
    return absl::OkStatus();
  }
  Replace(module_, i.id(), operand);
  return absl::OkStatus();
}

void ShardyImporter::ReadGroup(Instruction i) {
  ++count_;
  const InstructionId id = i.id();
  const StringId text = FindFrontendAttribute(i, "xla.sdy.sharding_group_id");
  const int64_t group = text.valid() ? NumberOf(module_.context().str(text)) : -1;
  if (i.operand_count() == 1 && i.operand(0).shape().IsArray() && group >= 0) {
    const Instruction member = i.operand(0);
    Tiling tiling = Tiling::Of(ShardingKind::kUnknown);
    if (const std::optional<uint32_t> own = member.payload(Attr::kSharding)) {
      const Sharding sharding = DecodeSharding(module_.context(), ListId(*own));
      tiling = TilingOf(sharding.leaf(), member.shape().rank()).value_or(Tiling());
    }
    tiling.group = ShardGroup::kAs;
    tiling.group_id = group;
    SetSharding(member.id(), {tiling});
  }
  if (!module_.instruction(id).has_users() && !module_.instruction(id).is_root()) module_.Erase(id);
}

void ShardyImporter::ReadBarrier(Instruction i) {
  ++count_;
  const StringId text = FindFrontendAttribute(i, "xla.sdy.allowed_direction");
  // 1: forward only, 2: backward only, 3: both.
  const int64_t allowed = text.valid() ? NumberOf(module_.context().str(text)) : 0;
  Builder b(&module_, i.id());
  const AnnotationScope scope(&b, {i.id()});
  InstructionId value = i.operand(0).id();
  const auto add = [&](std::string_view target) {
    value = b.WithName("custom-call")
                .Make(Opcode::kCustomCall, i.shape(), {value}, {b.String(Attr::kCustomCallTarget, target)});
  };
  if (allowed == 0 || allowed == 2) add("ShardBarrierFrom");
  if (allowed == 0 || allowed == 1) add("ShardBarrierTo");
  Replace(module_, i.id(), value);
}

absl::Status ShardyImporter::Rewrite(Computation c, const ManualRegion& region) {
  std::vector<InstructionId> all;
  for (Instruction i : c.instructions()) all.push_back(i.id());
  for (const InstructionId id : all) {
    if (!module_.record(id).parent.valid()) continue;  // replaced with another
    const Instruction i = module_.instruction(id);
    const std::string_view target = CallTarget(i);
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
      ReadBarrier(i);
    } else if (target == "Sharding" && i.operand_count() == 1) {
      status = ReadConstraint(i, region);
    } else {
      status = ReadSharding(i, region);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Reducers, comparators and others that run on elements: constraints there mean nothing.
void ShardyImporter::RemoveMarksOf(Computation c) {
  std::vector<InstructionId> all;
  for (Instruction i : c.instructions()) all.push_back(i.id());
  for (const InstructionId id : all) {
    const Instruction i = module_.instruction(id);
    const std::string_view target = CallTarget(i);
    DropSdy(i, kSdySharding);
    if (target != "Sharding" || i.operand_count() != 1) continue;
    module_.RemoveAttr(id, Attr::kSharding);
    Replace(module_, id, i.operand(0).id());
    ++count_;
  }
}

void ShardyImporter::SetRootSharding() {
  const Instruction root = module_.entry().root();
  if (root.has(Attr::kSharding) || result_of_.empty()) return;
  // Each leaf by the way it takes through tuples.
  const auto element = [](Instruction i, std::vector<int64_t> path) {
    for (;; i = i.operand(0)) {
      for (; i.opcode() == Opcode::kTuple && !path.empty(); path.pop_back()) i = i.operand(path.back());
      if (i.opcode() != Opcode::kGetTupleElement) return i;
      path.push_back(i.int_attr(Attr::kIndex));
    }
  };
  std::vector<Tiling> leaves;
  bool known = false;
  const auto add = [&](Instruction value) {
    const auto found = result_of_.find(value.id().value);
    known = known || found != result_of_.end();
    leaves.push_back(found != result_of_.end() ? found->second : Tiling());
  };
  const bool tuple = root.shape().IsTuple();
  for (int64_t k = 0; k < (tuple ? root.shape().tuple_size() : 1); ++k) {
    if (tuple && root.shape().element(k).IsTuple()) return;  // results are a flat tuple
    add(element(root, tuple ? std::vector<int64_t>{k} : std::vector<int64_t>()));
  }
  if (known) SetSharding(root.id(), leaves);
}

absl::StatusOr<int64_t> ShardyImporter::Run() {
  if (!module_.entry().valid() || !IsNeeded()) return count_;
  const ListId header = module_.header().frontend_attributes;
  if (header.valid()) {
    const StringId meshes = FindFrontendAttribute(module_.context(), header, "xla.sdy.meshes");
    if (meshes.valid()) meshes_ = module_.context().str(meshes);
  }
  if (absl::Status status = FindRegions(); !status.ok()) return status;
  for (const ComputationId c : order_) {
    if (absl::Status status = Rewrite(module_.computation(c), regions_[c.value]); !status.ok()) return status;
  }
  for (const Computation c : module_.computations()) {
    if (!regions_.contains(c.id().value)) RemoveMarksOf(c);
  }
  SetRootSharding();
  return count_;
}

}  // namespace

absl::StatusOr<int64_t> ImportShardy(Module& module) { return ShardyImporter(module).Run(); }

}  // namespace hlokit::sharding
