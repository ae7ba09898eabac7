// SPDX-License-Identifier: Apache-2.0
// Constraints with unspecified dimensions: what is learned about these is merged into the constraint, and into the
// conversion to or from manual code that follows it, which has the same devices with some of them manual.
#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph/instruction_queries.h"
#include "ir/sharding/tiling_arithmetic.h"
#include "passes/sharding/propagator.h"

namespace hlokit::sharding {
namespace {

// What a tiling says on both sides of a conversion.
struct BothSides {
  Tiling manual, automatic;
};

// Returns the tiling of the side with more manual axes, and that of the other side, which divides dimensions along
// these axes too, as `automatic` does. `learned` is of one of the sides.
std::optional<BothSides> SidesOf(const Tiling& manual, const Tiling& automatic, const Tiling& learned,
                                 bool learned_is_manual) {
  const std::optional<std::pair<Tiling, Tiling>> both = InOneOrder(manual, learned);
  if (!both) return std::nullopt;
  const AxisList& region = both->first.manual;
  BothSides sides = {both->second, both->second};
  sides.manual.manual = region;
  for (AxisList& dim : sides.manual.dims) {
    std::optional<AxisList> rest = Subtract(dim, region, learned.device_count);
    if (!rest) return std::nullopt;
    dim = *std::move(rest);
  }
  if (!automatic.tiled()) {
    sides.automatic.manual.clear();
    if (learned_is_manual != !learned.manual.empty()) return std::nullopt;
    return sides;
  }
  const std::optional<std::pair<Tiling, Tiling>> frames = InOneOrder(automatic, both->second);
  if (!frames || frames->first.order != both->first.order) return std::nullopt;
  const AxisList& around = frames->first.manual;
  if (both->second.manual != (learned_is_manual ? region : around)) return std::nullopt;
  sides.automatic = frames->second;
  sides.automatic.manual = around;
  for (size_t d = 0; d < sides.automatic.dims.size() && learned_is_manual; ++d) {
    AxisList outer = frames->first.dims[d];
    const std::optional<AxisList> rest = Subtract(outer, region, learned.device_count);
    if (outer.empty() || !rest || !rest->empty()) continue;
    AppendAxes(&outer, sides.automatic.dims[d]);
    sides.automatic.dims[d] = std::move(outer);
  }
  return sides;
}

std::optional<Tiling> MergeFiner(const Tiling& learned, const Tiling& into) {
  std::optional<Tiling> merged = Merge(learned, into, MergePolicy::kWholeDimensions);
  if (!merged) merged = Merge(learned, into, MergePolicy::kPrefixes);
  if (!merged || merged->tiles() <= into.tiles()) return std::nullopt;
  return merged;
}

}  // namespace

Instruction Propagator::ConversionAfter(Instruction i) const {
  const std::vector<Instruction> users = i.users();
  if (users.size() != 1) return Instruction();
  const std::string_view target = CustomCallTargetOf(users[0]);
  return target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape" ? users[0] : Instruction();
}

// `learned` is a tiling of the side that has `learned_is_manual`.
bool Propagator::RefineWith(Instruction i, Instruction conversion, const Tiling& learned, bool learned_is_manual,
                            const Source& source) {
  const std::vector<int64_t>& dims = unspecified_.find(i.id())->second;
  const TilingRef constraint = ArrayTiling(i);
  if (constraint == nullptr || !learned.tiled() || learned.rank() != i.shape().rank()) return false;
  const Tiling partial = ReplicateDimsExcept(learned, dims);
  if (!partial.tiled() || partial.tiles() == 1) return false;
  if (!conversion.valid()) {
    const std::optional<Tiling> merged = MergeFiner(partial, *constraint);
    if (!merged) return false;
    SetFrom(i, {Intern(*merged)}, source);
    return true;
  }
  const TilingRef converted = ArrayTiling(conversion);
  if (converted == nullptr || (!converted->tiled() && !converted->replicated_everywhere())) return false;
  const bool to_manual = CustomCallTargetOf(conversion) == "SPMDFullToShardShape";
  const Tiling &automatic = to_manual ? *constraint : *converted, &manual = to_manual ? *converted : *constraint;
  if (manual.manual.empty() || !manual.IsPartiallyReplicated()) return false;
  const std::optional<BothSides> sides = SidesOf(manual, automatic, partial, learned_is_manual);
  if (!sides) return false;
  const std::optional<Tiling> new_manual = MergeFiner(sides->manual, manual);
  const std::optional<Tiling> new_automatic = MergeFiner(sides->automatic, automatic);
  if (!new_manual || !new_automatic) return false;
  SetFrom(i, {Intern(to_manual ? *new_automatic : *new_manual)}, source);
  SetFrom(conversion, {Intern(to_manual ? *new_manual : *new_automatic)}, {SourceKind::kSameValue, i});
  from_users_done_[conversion.id().value] = 0;
  ClearVisited(i, conversion);
  return true;
}

bool Propagator::RefineFromOperand(Instruction i) {
  const TilingRef operand = ArrayTiling(i.operand(0));
  if (operand == nullptr || !operand->tiled()) return false;
  const Instruction conversion = ConversionAfter(i);
  const bool manual = conversion.valid() && CustomCallTargetOf(conversion) == "SPMDShardToFullShape";
  const bool changed = RefineWith(i, conversion, *operand, manual, {SourceKind::kOperand, i.operand(0)});
  if (changed) ClearVisited(i);
  return changed;
}

bool Propagator::RefineFromUsers(Instruction i) {
  const Instruction conversion = ConversionAfter(i);
  const Instruction before_users = conversion.valid() ? conversion : i;
  const bool manual = conversion.valid() && CustomCallTargetOf(conversion) == "SPMDFullToShardShape";
  bool changed = false;
  for (Instruction user : UsersOf(before_users)) {
    if (!Has(user) || !PassesAtLevel(user)) continue;
    int64_t index = 0;
    while (user.operand(index) != before_users) ++index;
    const auto proposals = FromUser(user, index);
    if (!proposals || proposals->size() != 1 || !(*proposals)[0]) continue;
    changed |= RefineWith(i, conversion, *(*proposals)[0], manual, {SourceKind::kUser, user});
  }
  if (changed) ClearVisited(i);
  return changed;
}

}  // namespace hlokit::sharding
