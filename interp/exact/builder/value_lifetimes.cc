// SPDX-License-Identifier: Apache-2.0
// Lifetimes of the values of a compiled computation: when they are computed, released, and where results go.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "interp/exact/builder/block_placement.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/program_builder.h"

namespace hlokit::interp {

void CompiledComputationBuilder::MoveThunksOut() {
  CompiledComputation& r = *compiled_;
  if (!program_.is_body_of_one_loop(r.computation) || r.parameters.size() != r.results.size()) return;
  absl::flat_hash_map<uint32_t, uint32_t> unchanged;  // leaf of the state by slot
  for (uint32_t i = 0; i < r.parameters.size(); ++i) {
    const OperandRef& result = r.results[i];
    if (result.slot == r.parameters[i] && result.offset == 0) unchanged.emplace(result.slot, i);
  }
  std::vector<Thunk> kept;
  std::vector<uint32_t> moved(r.thunks.size());
  for (size_t i = 0; i < r.thunks.size(); ++i) {
    const Thunk& thunk = r.thunks[i];
    moved[i] = static_cast<uint32_t>(kept.size());
    const auto leaf = thunk.leaves_loops ? unchanged.find(r.operands[thunk.operand_begin].slot) : unchanged.end();
    if (leaf == unchanged.end()) {
      kept.push_back(thunk);
      continue;
    }
    r.moved.push_back({thunk.kernel, thunk.params, leaf->second, r.operands[thunk.operand_begin].offset,
                       r.slots[thunk.result_begin].bytes});
    r.parameters.push_back(thunk.result_begin);
    r.results.push_back({thunk.result_begin, 0});
  }
  r.thunks = std::move(kept);
  for (PendingReuse& p : reuses_) p.thunk = moved[p.thunk];
}

void CompiledComputationBuilder::HoistInvariantThunks() {
  CompiledComputation& r = *compiled_;
  if (!program_.is_called(r.computation)) return;
  const auto pure = [&](const Thunk& thunk) {
    if (thunk.kind != ThunkKind::kKernel || !thunk.pure) return false;
    const Opcode opcode = program_.module().instruction(thunk.instruction).opcode();
    return !HasTrait(opcode, kSideEffect) && !HasTrait(opcode, kImpure);
  };
  std::vector<bool> fixed(r.slots.size(), false);  // call-invariant
  for (size_t i = 0; i < r.slots.size(); ++i) fixed[i] = r.slots[i].constant != nullptr;
  std::vector<bool> first(r.thunks.size(), false);
  size_t count = 0;
  for (size_t i = 0; i < r.thunks.size(); ++i) {
    const Thunk& thunk = r.thunks[i];
    bool all = pure(thunk);
    for (uint32_t k = 0; all && k < thunk.operand_count; ++k) all = fixed[r.operands[thunk.operand_begin + k].slot];
    if (!all) continue;
    first[i] = true;
    ++count;
    for (uint32_t k = 0; k < thunk.result_count; ++k) fixed[thunk.result_begin + k] = true;
  }
  if (count == 0) return;
  // Invariant values that later thunks read live as long as the frame.
  constexpr int64_t kMaxKeptBytes = int64_t{64} << 20;
  int64_t kept_bytes = 0;
  std::vector<bool> kept(r.slots.size(), false);
  const auto keep = [&](uint32_t slot) {
    if (!fixed[slot] || r.slots[slot].constant != nullptr || kept[slot]) return;
    kept[slot] = true;
    kept_bytes += r.slots[slot].bytes;
  };
  for (size_t i = 0; i < r.thunks.size(); ++i) {
    if (first[i]) continue;
    for (uint32_t k = 0; k < r.thunks[i].operand_count; ++k) keep(r.operands[r.thunks[i].operand_begin + k].slot);
  }
  for (const OperandRef& ref : r.results) keep(ref.slot);
  if (kept_bytes > kMaxKeptBytes) return;
  std::vector<Thunk> ordered;
  std::vector<uint32_t> moved(r.thunks.size());
  for (bool pass : {true, false}) {
    for (size_t i = 0; i < r.thunks.size(); ++i) {
      if (first[i] != pass) continue;
      moved[i] = static_cast<uint32_t>(ordered.size());
      ordered.push_back(r.thunks[i]);
    }
  }
  r.thunks = std::move(ordered);
  for (PendingReuse& p : reuses_) p.thunk = moved[p.thunk];
  r.first_variant_thunk = static_cast<uint32_t>(count);
  for (size_t i = 0; i < r.slots.size(); ++i) r.slots[i].call_invariant = kept[i];
}

void CompiledComputationBuilder::ComputeLastUses() {
  CompiledComputation& r = *compiled_;
  std::vector<bool> used(r.slots.size(), false);
  const auto is_constant = [&](uint32_t slot) {
    return r.slots[slot].constant != nullptr || r.slots[slot].call_invariant;
  };
  for (const OperandRef& ref : r.results) used[ref.slot] = true;
  // In reverse order: the first use found is the last one.
  for (size_t i = r.thunks.size(); i-- > 0;) {
    Thunk& thunk = r.thunks[i];
    thunk.release_begin = static_cast<uint32_t>(r.releases.size());
    for (uint32_t k = 0; k < thunk.result_count; ++k) {
      const uint32_t slot = thunk.result_begin + k;
      if (!used[slot] && !is_constant(slot)) r.releases.push_back(slot);
      used[slot] = true;
    }
    for (uint32_t k = 0; k < thunk.operand_count; ++k) {
      const uint32_t slot = r.operands[thunk.operand_begin + k].slot;
      if (used[slot] || is_constant(slot)) continue;
      used[slot] = true;
      r.releases.push_back(slot);
    }
    thunk.release_count = static_cast<uint32_t>(r.releases.size()) - thunk.release_begin;
  }
  // Live until the end: results, and parameters without readers.
  used.assign(r.slots.size(), false);
  for (uint32_t slot : r.releases) used[slot] = true;
  for (uint32_t slot = 0; slot < r.slots.size(); ++slot) {
    if (!used[slot] && !is_constant(slot)) r.end_releases.push_back(slot);
  }
  for (const PendingReuse& p : reuses_) {
    Thunk& thunk = r.thunks[p.thunk];
    const uint32_t slot = r.operands[thunk.operand_begin + p.reuse.operand].slot;
    const auto ended_here = absl::MakeConstSpan(r.releases).subspan(thunk.release_begin, thunk.release_count);
    if (std::find(ended_here.begin(), ended_here.end(), slot) == ended_here.end()) continue;
    if (thunk.reuse_count == 0) thunk.reuse_begin = static_cast<uint32_t>(r.reuses.size());
    r.reuses.push_back(p.reuse);
    ++thunk.reuse_count;
  }
}

void CompiledComputationBuilder::MarkResults() {
  CompiledComputation& r = *compiled_;
  if (program_.is_called(r.computation)) {
    AssignMemory(&r, /*is_placed=*/false);
    return;
  }
  std::vector<Shape> leaves;
  AppendLeaves(r.computation.root().shape(), &leaves);
  constexpr int64_t kMinBytes = 128 << 10;
  for (size_t leaf = 0; leaf < r.results.size(); ++leaf) {
    SlotInfo& slot = r.slots[r.results[leaf].slot];
    if (r.results[leaf].offset != 0 || slot.constant != nullptr || slot.bytes < kMinBytes ||
        BytesOfLeaf(leaves[leaf]) != slot.bytes) {
      continue;
    }
    slot.result = static_cast<uint32_t>(leaf);
    slot.shape = leaves[leaf];
  }
  AssignMemory(&r, /*is_placed=*/program_.options().kernels != nullptr);
}

}  // namespace hlokit::interp
