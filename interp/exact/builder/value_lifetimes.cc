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
  CompiledComputation& r = *routine_;
  if (!program_.is_body_of_one_loop(r.computation) || r.parameters.size() != r.results.size()) return;
  absl::flat_hash_map<uint32_t, uint32_t> unchanged;  // leaf of the state by slot
  for (uint32_t i = 0; i < r.parameters.size(); ++i) {
    const OperandRef& result = r.results[i];
    if (result.slot == r.parameters[i] && result.offset == 0) unchanged.emplace(result.slot, i);
  }
  std::vector<Thunk> kept;
  std::vector<uint32_t> moved(r.thunks.size());
  for (size_t i = 0; i < r.thunks.size(); ++i) {
    const Thunk& step = r.thunks[i];
    moved[i] = static_cast<uint32_t>(kept.size());
    const auto leaf = step.leaves_loops ? unchanged.find(r.operands[step.operand_begin].slot) : unchanged.end();
    if (leaf == unchanged.end()) {
      kept.push_back(step);
      continue;
    }
    r.moved.push_back({step.kernel, step.plan, leaf->second, r.operands[step.operand_begin].offset,
                       r.slots[step.result_begin].bytes});
    r.parameters.push_back(step.result_begin);
    r.results.push_back({step.result_begin, 0});
  }
  r.thunks = std::move(kept);
  for (PendingReuse& p : reuses_) p.step = moved[p.step];
}

void CompiledComputationBuilder::HoistInvariantThunks() {
  CompiledComputation& r = *routine_;
  if (!program_.is_called(r.computation)) return;
  const auto pure = [&](const Thunk& step) {
    if (step.kind != ThunkKind::kKernel || !step.pure) return false;
    const Opcode opcode = program_.module().instruction(step.instruction).opcode();
    return !HasTrait(opcode, kSideEffect) && !HasTrait(opcode, kImpure);
  };
  std::vector<bool> fixed(r.slots.size(), false);  // call-invariant
  for (size_t i = 0; i < r.slots.size(); ++i) fixed[i] = r.slots[i].constant != nullptr;
  std::vector<bool> first(r.thunks.size(), false);
  size_t count = 0;
  for (size_t i = 0; i < r.thunks.size(); ++i) {
    const Thunk& step = r.thunks[i];
    bool all = pure(step);
    for (uint32_t k = 0; all && k < step.operand_count; ++k) all = fixed[r.operands[step.operand_begin + k].slot];
    if (!all) continue;
    first[i] = true;
    ++count;
    for (uint32_t k = 0; k < step.result_count; ++k) fixed[step.result_begin + k] = true;
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
  for (PendingReuse& p : reuses_) p.step = moved[p.step];
  r.first_variant_thunk = static_cast<uint32_t>(count);
  for (size_t i = 0; i < r.slots.size(); ++i) r.slots[i].call_invariant = kept[i];
}

void CompiledComputationBuilder::ComputeLastUses() {
  CompiledComputation& r = *routine_;
  std::vector<bool> used(r.slots.size(), false);
  const auto is_constant = [&](uint32_t slot) {
    return r.slots[slot].constant != nullptr || r.slots[slot].call_invariant;
  };
  for (const OperandRef& ref : r.results) used[ref.slot] = true;
  // In reverse order: the first use found is the last one.
  for (size_t i = r.thunks.size(); i-- > 0;) {
    Thunk& step = r.thunks[i];
    step.release_begin = static_cast<uint32_t>(r.releases.size());
    for (uint32_t k = 0; k < step.result_count; ++k) {
      const uint32_t slot = step.result_begin + k;
      if (!used[slot] && !is_constant(slot)) r.releases.push_back(slot);
      used[slot] = true;
    }
    for (uint32_t k = 0; k < step.operand_count; ++k) {
      const uint32_t slot = r.operands[step.operand_begin + k].slot;
      if (used[slot] || is_constant(slot)) continue;
      used[slot] = true;
      r.releases.push_back(slot);
    }
    step.release_count = static_cast<uint32_t>(r.releases.size()) - step.release_begin;
  }
  // Live until the end: results, and parameters without readers.
  used.assign(r.slots.size(), false);
  for (uint32_t slot : r.releases) used[slot] = true;
  for (uint32_t slot = 0; slot < r.slots.size(); ++slot) {
    if (!used[slot] && !is_constant(slot)) r.end_releases.push_back(slot);
  }
  for (const PendingReuse& p : reuses_) {
    Thunk& step = r.thunks[p.step];
    const uint32_t slot = r.operands[step.operand_begin + p.reuse.operand].slot;
    const auto ended_here = absl::MakeConstSpan(r.releases).subspan(step.release_begin, step.release_count);
    if (std::find(ended_here.begin(), ended_here.end(), slot) == ended_here.end()) continue;
    if (step.reuse_count == 0) step.reuse_begin = static_cast<uint32_t>(r.reuses.size());
    r.reuses.push_back(p.reuse);
    ++step.reuse_count;
  }
}

void CompiledComputationBuilder::MarkResults() {
  CompiledComputation& r = *routine_;
  if (program_.is_called(r.computation)) {
    PlanMemory(&r, /*is_placed=*/false);
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
  PlanMemory(&r, /*is_placed=*/program_.options().kernels != nullptr);
}

}  // namespace hlokit::interp
