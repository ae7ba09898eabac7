// SPDX-License-Identifier: Apache-2.0
#include "passes/query/dimension_flow.h"

#include <algorithm>
#include <optional>

#include "ir/core/str_cat.h"
#include "ir/graph/traversal.h"
#include "passes/rewrite/splat.h"

namespace hlokit::query {

int64_t SizeChange::New(int64_t size) const {
  int64_t product = 0;
  if (size < 0 || __builtin_mul_overflow(size, to, &product)) return -1;
  if (rounds) return std::max<int64_t>(product / from, std::min<int64_t>(size, 1));
  return product % from != 0 ? -1 : product / from;
}

std::string SizeChange::RatioText() const { return StrCat(to, "/", from); }

absl::Status CannotFollow(Instruction i, std::string_view why) {
  return absl::InvalidArgumentError(
      StrCat("cannot follow the dimension through `", i.name(), "`, ", i.opcode_text(), ": ", why));
}

void DimensionFlow::Mark(Instruction i, int64_t leaf, int64_t dimension) {
  uint64_t& mask = marked_[{i.id().value, leaf}];
  const uint64_t bit = uint64_t{1} << static_cast<uint64_t>(dimension);
  if ((mask & bit) != 0) return;
  mask |= bit;
  open_.push_back({i, leaf, dimension});
}

absl::Status DimensionFlow::Follow(const SizeChange& change) {
  while (!open_.empty()) {
    const ValueDimension at = open_.back();
    open_.pop_back();
    if (absl::Status s = FollowFrom(at, change); !s.ok()) return s;
  }
  return absl::OkStatus();
}

uint64_t DimensionFlow::MaskOf(InstructionId id, int64_t leaf) const {
  const auto found = marked_.find({id.value, leaf});
  return found == marked_.end() ? 0 : found->second;
}

bool DimensionFlow::IsMarked(Instruction i) const {
  const int64_t leaves = i.shape().leaf_count();
  for (int64_t leaf = 0; leaf < leaves; ++leaf) {
    if (MaskOf(i.id(), leaf) != 0) return true;
  }
  return false;
}

absl::Status DimensionFlow::FollowFrom(const ValueDimension& at, const SizeChange& change) {
  const bool may_fail = obstacle_ == Obstacle::kError;
  if (may_fail) {
    const Shape leaf = Leaves(at.instruction.shape())[static_cast<size_t>(at.leaf)];
    if (leaf.rank() > kMaxRank || leaf.is_dynamic(at.dimension) || !change.Fits(leaf.dim(at.dimension))) {
      return CannotFollow(at.instruction, StrCat("dimension ", at.dimension, " of ", ToString(leaf, false),
                                                 " cannot be ", change.RatioText(), " as large"));
    }
  }
  // Leaves of the values are forwarded; operations have rules.
  const Instruction i = at.instruction;
  if (may_fail && (i.opcode() == Opcode::kParameter || i.is_root())) {
    const Instruction caller = flow_.FunctionCaller(i.parent());
    if (caller.valid()) return CannotFollow(caller, "it applies a function of arrays");
  }
  for (const ValueLeaf& next : flow_.Forwarded({i, at.leaf})) Mark(next.instruction, next.leaf, at.dimension);
  if (i.opcode() == Opcode::kConstant) {
    if (may_fail && !SplatOf(i)) return CannotFollow(i, "its elements are not all equal");
  } else if (!ValueFlow::ForwardsLeaves(i)) {
    absl::Status s = FollowRule(i, /*operand=*/-1, at.leaf, at.dimension, change);
    if (may_fail && !s.ok()) return s;
  }
  for (const auto use : i.uses()) {
    if (ValueFlow::ForwardsLeaves(use.user) || use.user.opcode() == Opcode::kGetDimensionSize) continue;
    absl::Status s = FollowRule(use.user, use.operand_index, at.leaf, at.dimension, change);
    if (may_fail && !s.ok()) return s;
  }
  return absl::OkStatus();
}

// Marks the dimensions that share a factor with one of an operand, or, for -1, of a leaf of the result.
absl::Status DimensionFlow::FollowRule(Instruction i, int64_t operand, int64_t leaf, int64_t dimension,
                                       const SizeChange& change) {
  const RuleClass kind = RuleClassOf(i);
  if (kind == RuleClass::kForwarding || kind == RuleClass::kNothing) {
    return CannotFollow(i, "it is a part of an asynchronous operation, or has no rule");
  }
  auto [found, fresh] = rules_.try_emplace(i.id().value);
  if (fresh) found->second.rule = RuleOf(i);
  const ShardingRule& rule = found->second.rule;
  std::vector<int32_t>& followed = found->second.factors;
  if (!rule.known) return CannotFollow(i, "its dimensions have no rule");
  const auto number = static_cast<size_t>(operand < 0 ? leaf : operand);
  const std::vector<ArrayFactors>& arrays = operand < 0 ? rule.results : rule.operands;
  if (number >= arrays.size() || static_cast<size_t>(dimension) >= arrays[number].size()) {
    return CannotFollow(i, "its dimensions have no rule");
  }
  // Of several factors the most major one that has the old size as a divisor, or else one that the ratio makes whole.
  const std::vector<int32_t>& factors = arrays[number][static_cast<size_t>(dimension)];
  // One along which the flow comes has been followed already.
  const auto is_followed = [&](int32_t f) { return std::find(followed.begin(), followed.end(), f) != followed.end(); };
  if (std::any_of(factors.begin(), factors.end(), is_followed)) return absl::OkStatus();
  std::optional<int32_t> chosen;
  for (const bool exact : {true, false}) {
    for (const int32_t f : factors) {
      const int64_t size = rule.factors[static_cast<size_t>(f)].size;
      if (!chosen && (factors.size() == 1 || (exact ? size % change.from == 0 : size > 1 && change.Fits(size)))) {
        chosen = f;
      }
    }
  }
  if (!chosen) {
    return CannotFollow(i,
                        StrCat("dimension ", dimension, " is made of parts of other dimensions, none of which can be ",
                               change.RatioText(), " as large"));
  }
  followed.push_back(*chosen);
  bool in_operands = false, in_results = false;
  const auto mark = [&](Instruction value, int64_t value_leaf, const ArrayFactors& array) {
    bool any = false;
    for (size_t d = 0; d < std::min<size_t>(array.size(), kMaxRank); ++d) {
      if (std::find(array[d].begin(), array[d].end(), *chosen) == array[d].end()) continue;
      Mark(value, value_leaf, static_cast<int64_t>(d));
      any = true;
    }
    return any;
  };
  for (size_t k = 0; k < rule.operands.size(); ++k) {
    in_operands |= mark(i.operand(static_cast<int64_t>(k)), 0, rule.operands[k]);
  }
  for (size_t k = 0; k < rule.results.size(); ++k) in_results |= mark(i, static_cast<int64_t>(k), rule.results[k]);
  const FactorKind factor = rule.factors[static_cast<size_t>(*chosen)].kind;
  if (!in_results && factor != FactorKind::kReduced) return CannotFollow(i, "it reads a part of the dimension");
  if (!in_operands && kind != RuleClass::kSource && kind != RuleClass::kBroadcast) {
    return CannotFollow(i, "the size does not come from an operand");
  }
  return absl::OkStatus();
}

std::vector<ValueDimension> IndependentDimensions(const Module& module) {
  std::vector<ValueDimension> representatives;
  DimensionFlow flow(module, DimensionFlow::Obstacle::kEnd);
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      const std::vector<Shape> leaves = Leaves(i.shape());
      for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
        const Shape array = leaves[leaf];
        if (!array.IsArray() || array.rank() > DimensionFlow::kMaxRank) continue;
        for (int64_t d = 0; d < array.rank(); ++d) {
          const uint64_t mask = flow.MaskOf(i.id(), static_cast<int64_t>(leaf));
          if (array.dim(d) <= 1 || array.is_dynamic(d) || (mask >> static_cast<uint64_t>(d) & 1) != 0) continue;
          representatives.push_back({i, static_cast<int64_t>(leaf), d});
          flow.Mark(i, static_cast<int64_t>(leaf), d);
          // Ends where it cannot go on, and is never an error.
          flow.Follow({array.dim(d), 1, /*rounds=*/true}).IgnoreError();
        }
      }
    }
  }
  return representatives;
}

}  // namespace hlokit::query
