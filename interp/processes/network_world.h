// SPDX-License-Identifier: Apache-2.0
// Devices of several processes that run programs together, over a ProcessNetwork. A run that cannot go on, because a
// process has ended, has had an error or does not come, ends with an error that names the process.
#ifndef HLOKIT_INTERP_PROCESSES_NETWORK_WORLD_H_
#define HLOKIT_INTERP_PROCESSES_NETWORK_WORLD_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "interp/processes/process_network.h"
#include "interp/processes/world.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

class NetworkTransport;

class NetworkWorld : public World {
 public:
  // `process_of`: by device, of which this process has one at least. `number`: of these devices, the same in all
  // processes, and of no others. Nobody is waited for longer than `timeout_seconds`. The network outlives the world.
  static std::shared_ptr<NetworkWorld> Create(ProcessNetwork* network, std::vector<int> process_of, uint64_t number,
                                              double timeout_seconds);
  ~NetworkWorld() override;

  int ProcessOf(int64_t device, int64_t devices) const override;
  std::vector<int64_t> OwnDevices(int64_t devices) const override;
  // Programs may differ in what they do between collectives.
  uint64_t ProgramOf(const Module& module) const override;
  absl::Status CheckProgram(uint64_t) override { return absl::OkStatus(); }
  void BeginRun(uint64_t program, std::string_view name) override;
  void EndRun(const absl::Status& status) override;
  absl::Status CheckOthers() override;

  void ReportIdle(absl::Span<const DeviceState>) override {}
  void ReportProgress(absl::Span<const DeviceState>) override {}
  bool AllWait(std::vector<DeviceState>*) override { return false; }
  void BeginCall(const char*) override {}
  void EndCall() override {}

 private:
  NetworkWorld(std::unique_ptr<NetworkTransport> transport, std::vector<int> process_of, double timeout_seconds);

  const std::unique_ptr<NetworkTransport> transport_;
  const std::vector<int> process_of_;
  std::mutex running_;  // held during a run
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROCESSES_NETWORK_WORLD_H_
