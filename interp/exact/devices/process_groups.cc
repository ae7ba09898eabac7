// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/devices/process_groups.h"

#include <algorithm>

#include "interp/processes/world.h"

namespace hlokit::interp {

absl::Status ProcessGroups::Create(const PreparedProgram& program, int64_t devices, World* world) {
  const uint64_t fingerprint = world->ProgramOf(*program.module);
  program_ = fingerprint << 32;
  // Others would wait for communicators that this process does not make.
  if (const absl::Status same = world->CheckProgram(fingerprint ^ static_cast<uint64_t>(devices)); !same.ok()) {
    return same;
  }
  const int self = world->rank();
  for (const std::unique_ptr<CompiledComputation>& computation : program.computations) {
    for (const Thunk& thunk : computation->thunks) {
      if (thunk.kind != ThunkKind::kCollective) continue;
      const auto* params = static_cast<const CollectiveParams*>(thunk.params);
      receives_ = receives_ || params->receives;
      Collective collective;
      collective.tag = program_ | instructions_.size();
      for (const std::vector<int64_t>& group : params->groups) {
        collective.groups.push_back(nullptr);
        const auto is_own = [&](int64_t d) { return world->ProcessOf(d, devices) == self; };
        if (std::none_of(group.begin(), group.end(), is_own)) continue;
        const absl::StatusOr<ProcessGroup*> processes = world->GroupOf(group, devices);
        if (!processes.ok()) return processes.status();
        collective.groups.back() = *processes;
      }
      instructions_.push_back(thunk.instruction);
      collectives_[params] = std::move(collective);
    }
  }
  created_ = true;
  return absl::OkStatus();
}

InstructionId ProcessGroups::InstructionOf(uint64_t tag) const {
  const uint64_t number = tag & 0xffffffff;
  if (tag - number != program_ || number >= instructions_.size()) return InstructionId();
  return instructions_[number];
}

}  // namespace hlokit::interp
