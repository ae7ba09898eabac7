// SPDX-License-Identifier: Apache-2.0
#include "pjrt/execution/open_results.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/graph/attribute_views.h"
#include "ir/sharding/sharding.h"
#include "ir/sharding/tiling.h"
#include "ir/sharding/tiling_arithmetic.h"

namespace hlokit::pjrt {
namespace {

bool AllOpen(const CompileOptions& options) {
  const std::vector<bool>& open = options.propagate_to_outputs;
  return !open.empty() && std::all_of(open.begin(), open.end(), [](bool o) { return o; });
}

bool InOrder(const Tiling& tiling) {
  for (size_t i = 0; i < tiling.order.size(); ++i) {
    if (tiling.order[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// Returns the leaf with some dimensions reversed, if that puts the devices into order; nullopt if they are, or nothing
// does.
std::optional<ShardingLeaf> LeafInOrder(const ShardingLeaf& leaf, int64_t rank) {
  constexpr int64_t kMaxRank = 8;  // of arrays all of whose subsets of dimensions are tried
  const std::optional<Tiling> tiling = TilingOf(leaf, rank);
  if (!tiling || !tiling->tiled() || InOrder(*tiling) || rank > kMaxRank) return std::nullopt;
  for (uint32_t subset = 1; subset < uint32_t{1} << rank; ++subset) {
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < rank; ++d) {
      if ((subset >> d & 1) != 0) dims.push_back(d);
    }
    if (const std::optional<Tiling> reversed = Reverse(*tiling, dims); reversed && InOrder(*reversed)) {
      return LeafOf(*reversed);
    }
  }
  return std::nullopt;
}

}  // namespace

void FreeUnevenResult(const CompileOptions& options, Module* module) {
  const Instruction root = module->entry().root();
  const bool open = options.propagate_to_outputs.size() == 1 && options.propagate_to_outputs[0];
  if (!open || !root.shape().IsArray() || !root.has(Attr::kSharding)) return;
  const Sharding sharding = DecodeSharding(module->context(), AttrReader(root).list_id(Attr::kSharding));
  if (sharding.is_tuple) return;
  const std::optional<Tiling> tiling = TilingOf(sharding.leaf(), root.shape().rank());
  bool uneven = false;
  for (int64_t d = 0; tiling && d < root.shape().rank(); ++d) {
    uneven = uneven || root.shape().dim(d) % tiling->tiles(d) != 0;
  }
  if (!uneven) return;
  Builder b(module, root.id());
  module->SetRoot(module->entry().id(), b.WithName(root.name()).Make(Opcode::kCopy, root.shape(), {root.id()}));
}

void KeepOrderOfMesh(const CompileOptions& options, Module* module) {
  const Instruction root = module->entry().root();
  if (!AllOpen(options) || !root.has(Attr::kSharding)) return;
  Context& context = module->context();
  const Sharding sharding = DecodeSharding(context, AttrReader(root).list_id(Attr::kSharding));
  // A copy of the value with the leaf in order, or the value itself.
  const auto in_order = [&](InstructionId value, const ShardingLeaf& leaf, ListId* given) {
    const Shape shape = module->instruction(value).shape();
    *given = EncodeSharding(&context, Sharding{false, {{leaf, 1}}});
    const std::optional<ShardingLeaf> ordered = shape.IsArray() ? LeafInOrder(leaf, shape.rank()) : std::nullopt;
    if (!ordered) return value;
    *given = EncodeSharding(&context, Sharding{false, {{*ordered, 1}}});
    Builder b(module, value);
    const InstructionId copy = b.Make(Opcode::kCopy, shape, {value});
    module->SetAttr(copy, Attr::kSharding, given->value);
    return copy;
  };
  if (!sharding.is_tuple) {
    ListId given;
    const InstructionId result = in_order(root.id(), sharding.leaf(), &given);
    if (result != root.id()) module->SetRoot(module->entry().id(), result);
    return;
  }
  if (root.opcode() != Opcode::kTuple) return;
  std::vector<ShardingLeaf> leaves;
  for (const Sharding::Run& run : sharding.runs) leaves.insert(leaves.end(), static_cast<size_t>(run.count), run.leaf);
  if (static_cast<int64_t>(leaves.size()) != root.operand_count()) return;
  std::vector<InstructionId> elements;
  std::vector<ListId> given(leaves.size());
  bool changed = false;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const InstructionId element = root.operand(static_cast<int64_t>(i)).id();
    elements.push_back(in_order(element, leaves[i], &given[i]));
    changed = changed || elements.back() != element;
  }
  if (!changed) return;
  Builder b(module, root.id());
  const InstructionId tuple = b.MakeTuple(elements);
  module->SetAttr(tuple, Attr::kSharding, EncodeTupleSharding(&context, given).value);
  module->SetRoot(module->entry().id(), tuple);
}

}  // namespace hlokit::pjrt
