// SPDX-License-Identifier: Apache-2.0
#include "passes/view/graph_properties.h"

#include <string_view>

#include "absl/status/statusor.h"
#include "ir/graph/side_effects.h"
#include "passes/analysis/memory.h"
#include "passes/analysis/trip_count.h"

namespace hlokit {
namespace {

// Parameters of the entry whose memory a result may reuse.
void MarkDonated(const Module& module, std::vector<uint8_t>* flags) {
  const Computation entry = module.entry();
  const auto mark = [&](int64_t number) {
    if (number < 0 || number >= entry.parameter_count()) return;
    (*flags)[entry.parameter(number).id().value] |= kHighlightDonated;
  };
  for (const InputOutputAlias& alias : module.header().input_output_alias) mark(alias.parameter);
  for (const BufferDonor& donor : module.header().buffer_donor) mark(donor.parameter);
}

}  // namespace

GraphProperties PropertiesOf(const Module& module) {
  GraphProperties result;
  result.flags.assign(module.instruction_id_bound(), 0);
  result.live_bytes.assign(module.instruction_id_bound(), 0);
  const SideEffects effects(module);
  for (const Computation computation : module.computations()) {
    for (const Instruction i : computation.instructions()) {
      uint8_t& flags = result.flags[i.id().value];
      const bool root = i.is_root();
      const bool effect = effects.Of(i);
      if (root) flags |= kHighlightRoot;
      if (effect) flags |= kHighlightSideEffect;
      if (!root && !effect && !i.has_users() && i.opcode() != Opcode::kParameter) flags |= kHighlightDead;
      if (i.name().find(".remat") != std::string_view::npos) flags |= kHighlightRecomputed;
      if (i.opcode() != Opcode::kWhile) continue;
      if (const std::optional<int64_t> trips = TripCount(i)) result.trip_counts.emplace_back(i.id(), *trips);
    }
  }
  MarkDonated(module, &result.flags);
  if (const absl::StatusOr<MemoryAnalysis> memory = MemoryAnalysis::Create(module); memory.ok()) {
    result.peak_bytes = memory->OfModule().peak_bytes;
    for (const LiveBuffer& buffer : memory->LiveAtPeak(module)) {
      result.flags[buffer.defining_instruction.value] |= kHighlightLiveAtPeak;
      result.live_bytes[buffer.defining_instruction.value] += buffer.bytes;
    }
  }
  return result;
}

}  // namespace hlokit
