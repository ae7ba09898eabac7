// SPDX-License-Identifier: Apache-2.0
#include "interp/processes/network_world.h"

#include <algorithm>
#include <utility>

#include "interp/processes/network_transport.h"
#include "ir/core/hashing.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {

NetworkWorld::NetworkWorld(std::unique_ptr<NetworkTransport> transport, std::vector<int> process_of,
                           double timeout_seconds)
    : World(transport.get(), timeout_seconds), transport_(std::move(transport)), process_of_(std::move(process_of)) {}

NetworkWorld::~NetworkWorld() = default;

std::shared_ptr<NetworkWorld> NetworkWorld::Create(ProcessNetwork* network, std::vector<int> process_of,
                                                   uint64_t number, double timeout_seconds) {
  std::vector<int> processes = process_of;
  std::sort(processes.begin(), processes.end());
  processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
  std::vector<int> ranks;
  for (const int process : process_of) {
    const auto at = std::lower_bound(processes.begin(), processes.end(), process);
    ranks.push_back(static_cast<int>(at - processes.begin()));
  }
  auto transport = std::make_unique<NetworkTransport>(network, std::move(processes), number, timeout_seconds);
  return std::shared_ptr<NetworkWorld>(new NetworkWorld(std::move(transport), std::move(ranks), timeout_seconds));
}

int NetworkWorld::ProcessOf(int64_t device, int64_t) const { return process_of_[static_cast<size_t>(device)]; }

std::vector<int64_t> NetworkWorld::OwnDevices(int64_t devices) const {
  std::vector<int64_t> own;
  for (int64_t d = 0; d < devices; ++d) {
    if (ProcessOf(d, devices) == rank()) own.push_back(d);
  }
  return own;
}

uint64_t NetworkWorld::ProgramOf(const Module& module) const {
  std::string text = StrCat(static_cast<int64_t>(process_of_.size()));
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      if (!HasTrait(i.opcode(), kCollective)) continue;
      StrAppend(&text, "\n", i.opcode_text());
      for (const Instruction operand : i.operands()) StrAppend(&text, " ", ToString(operand.shape(), false));
      StrAppend(&text, " ", ToString(i.shape(), false));
      for (const Attr attr : {Attr::kReplicaGroups, Attr::kSourceTargetPairs, Attr::kDimensions}) {
        if (!i.has(attr)) continue;
        StrAppend(&text, " [");
        for (const int64_t value : i.list_attr(attr)) StrAppend(&text, value, ",");
      }
      if (i.has(Attr::kToApply)) {
        const Computation reducer = i.computation_attr(Attr::kToApply);
        for (const Instruction step : reducer.instructions()) StrAppend(&text, " ", step.opcode_text());
      }
    }
  }
  return std::max<uint64_t>(HashBytes(text), 1);
}

void NetworkWorld::BeginRun(uint64_t program, std::string_view name) {
  running_.lock();
  ResetOperations();
  transport_->BeginRun(program, name);
}

void NetworkWorld::EndRun(const absl::Status& status) {
  transport_->EndRun(status);
  running_.unlock();
}

absl::Status NetworkWorld::CheckOthers() { return transport_->Check(); }

}  // namespace hlokit::interp
