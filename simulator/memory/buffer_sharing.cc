// SPDX-License-Identifier: Apache-2.0
#include "simulator/memory/buffer_sharing.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "ir/graph/operand_alias.h"
#include "ir/ops/opcode_set.h"
#include "passes/target/aliases.h"
#include "passes/target/op_class.h"

namespace hlokit::tpu {

namespace {

constexpr size_t kMaxPairs = 65536;  // of one instruction

// Returns the leaf at `index` of a shape; nullopt unless it is one array.
std::optional<int64_t> LeafAt(Shape shape, absl::Span<const int64_t> index) {
  int64_t leaf = 0;
  for (int64_t k : index) {
    if (!shape.IsTuple() || k < 0 || k >= shape.tuple_size()) return std::nullopt;
    for (int64_t before = 0; before < k; ++before) leaf += shape.element(before).leaf_count();
    shape = shape.element(k);
  }
  if (shape.IsTuple()) return std::nullopt;
  return leaf;
}

// Returns true if both arrays have the same elements at the same addresses, as far as their layouts state it.
bool SameOrder(Shape a, Shape b) {
  if (!a.IsArray() || !b.IsArray() || a.rank() != b.rank()) return false;
  for (int64_t d = 0; d < a.rank(); ++d) {
    if (a.dim(d) != b.dim(d)) return false;
  }
  if (!a.has_layout() || !b.has_layout()) return true;
  const absl::Span<const int64_t> x = a.layout()->minor_to_major, y = b.layout()->minor_to_major;
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

// Instructions that keep each element at its index, so that a kernel can overwrite what it has read.
bool KeepsIndices(Instruction i) {
  return HasTrait(i.opcode(), kElementwise) || ClassOf(i.opcode()) == OpClass::kTuple || i.opcode() == Opcode::kBitcast;
}

Instruction BelowNames(Instruction value) {
  while (value.operand_count() > 0 && (IsAlias(value) || value.opcode() == Opcode::kCopy)) value = value.operand(0);
  return value;
}

class FusionSharing {
 public:
  FusionSharing(Instruction fusion, Computation body) : fusion_(fusion), body_(body) {
    if (body.root().opcode() == Opcode::kTuple) {
      for (Instruction result : body.root().operands()) results_.push_back(result);
    } else {
      results_.push_back(body.root());
    }
  }

  std::vector<SharedLeaf> Find() {
    std::vector<SharedLeaf> pairs;
    for (int64_t k = 0; k < body_.parameter_count() && k < fusion_.operand_count(); ++k) {
      const Instruction parameter = body_.parameter(k);
      if (!parameter.shape().IsArray()) continue;
      const std::vector<int64_t> updated = UpdatesOf(parameter);
      for (int64_t leaf : updated) pairs.push_back({leaf, k, 0});
      if (!updated.empty() || !IsReadElementwise(parameter)) continue;
      for (size_t leaf = 0; leaf < results_.size() && pairs.size() < kMaxPairs; ++leaf) {
        if (!SameOrder(results_[leaf].shape(), parameter.shape())) continue;
        pairs.push_back({static_cast<int64_t>(leaf), k, 0});
      }
    }
    return pairs;
  }

 private:
  // Returns the results that are updates in place of this parameter.
  std::vector<int64_t> UpdatesOf(Instruction parameter) const {
    std::vector<int64_t> leaves;
    for (size_t leaf = 0; leaf < results_.size(); ++leaf) {
      Instruction from = BelowNames(results_[leaf]);
      if (ClassOf(from.opcode()) != OpClass::kUpdate) continue;
      while (ClassOf(from.opcode()) == OpClass::kUpdate) from = BelowNames(from.operand(0));
      if (from == parameter) leaves.push_back(static_cast<int64_t>(leaf));
    }
    return leaves;
  }

  // Returns true if the fusion reads the parameter only at the index that it writes.
  static bool IsReadElementwise(Instruction parameter) {
    std::vector<Instruction> open = {parameter};
    absl::flat_hash_set<uint32_t> seen;
    while (!open.empty()) {
      const Instruction value = open.back();
      open.pop_back();
      for (const auto [user, index] : value.uses()) {
        if (!KeepsIndices(user) || (user.shape().IsArray() && !SameOrder(user.shape(), parameter.shape())))
          return false;
        if (seen.insert(user.id().value).second) open.push_back(user);
      }
    }
    return true;
  }

  const Instruction fusion_;
  const Computation body_;
  std::vector<Instruction> results_;
};

std::vector<SharedLeaf> Find(Instruction i) {
  std::vector<SharedLeaf> pairs;
  absl::Span<const int64_t> declared = i.list_attr(Attr::kOutputToOperandAliasing);
  while (const std::optional<OperandAlias> alias = NextOperandAlias(&declared)) {
    if (alias->operand < 0 || alias->operand >= i.operand_count()) continue;
    const std::optional<int64_t> leaf = LeafAt(i.shape(), alias->output_index);
    const std::optional<int64_t> from = LeafAt(i.operand(alias->operand).shape(), alias->operand_index);
    if (leaf && from) pairs.push_back({*leaf, alias->operand, *from});
  }
  if (!pairs.empty() || i.operand_count() == 0) return pairs;
  const OpClass op_class = ClassOf(i.opcode());
  if (i.opcode() == Opcode::kFusion) {
    const Computation body = i.computation_attr(Attr::kCalls);
    return body.valid() && body.root().valid() ? FusionSharing(i, body).Find() : pairs;
  }
  if (op_class == OpClass::kLoop) {
    const int64_t leaves = std::min(i.shape().leaf_count(), static_cast<int64_t>(kMaxPairs));
    for (int64_t leaf = 0; leaf < leaves; ++leaf) pairs.push_back({leaf, 0, leaf});
  } else if (op_class == OpClass::kUpdate && i.shape().IsArray()) {
    pairs.push_back({0, 0, 0});
  } else if (op_class == OpClass::kUpdate ||
             OpcodeSet{Opcode::kSort, Opcode::kAllReduce, Opcode::kAllReduceStart}.Contains(i.opcode())) {
    const int64_t leaves = std::min(i.shape().leaf_count(), i.operand_count());
    for (int64_t k = 0; k < leaves; ++k) pairs.push_back({k, k, 0});
  } else if (HasTrait(i.opcode(), kElementwise) && i.shape().IsArray()) {
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      if (SameOrder(i.shape(), i.operand(k).shape())) pairs.push_back({0, k, 0});
    }
  }
  return pairs;
}

}  // namespace

absl::Span<const SharedLeaf> BufferSharing::Of(Instruction instruction) {
  const auto [found, is_new] = found_.try_emplace(instruction.id().value);
  if (is_new) {
    found->second = Find(instruction);
    std::sort(found->second.begin(), found->second.end(), [](const SharedLeaf& a, const SharedLeaf& b) {
      return std::tie(a.leaf, a.operand, a.operand_leaf) < std::tie(b.leaf, b.operand, b.operand_leaf);
    });
  }
  return found->second;
}

}  // namespace hlokit::tpu
