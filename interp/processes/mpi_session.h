// SPDX-License-Identifier: Apache-2.0
// A program that runs as several processes under mpirun or srun: from the start of MPI to its end.
#ifndef HLOKIT_INTERP_PROCESSES_MPI_SESSION_H_
#define HLOKIT_INTERP_PROCESSES_MPI_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/processes/control_channel.h"
#include "interp/processes/transport.h"
#include "interp/processes/world.h"

namespace hlokit::interp {

struct MpiSessionOptions {
  std::string tool;             // begins messages
  double timeout_seconds = 30;  // after which a silent process counts as dead, and a wait of all is an error
};

class MpiSession : public World {
 public:
  // Loads the module and starts MPI. UNIMPLEMENTED if this build has no MPI. From here on the standard error of all
  // processes but the first is kept back: Fail sends it to the first.
  static absl::StatusOr<std::unique_ptr<MpiSession>> Start(const MpiSessionOptions& options);

  // Ends the reading of flags and files, before the run.
  void EndSetup() { channel_->EndSetup(); }
  // Ends all processes; does not return unless the exit code is 0, after all processes have come here.
  int End(int exit_code);
  // Returns the next number of a queue: 0, 1, ..., each to one process.
  int64_t NextItem() { return channel_->NextItem(); }

  void ReportIdle(absl::Span<const DeviceState> states) override { channel_->SetIdle(states); }
  void ReportProgress(absl::Span<const DeviceState> states) override { channel_->SetBusy(states); }
  bool AllWait(std::vector<DeviceState>* states) override { return channel_->TakeAllWait(states); }
  void BeginCall(const char* what) override { channel_->BeginCall(what); }
  void EndCall() override { channel_->EndCall(); }

 private:
  MpiSession(Transport* transport, std::unique_ptr<ControlChannel> channel, const MpiSessionOptions& options)
      : World(transport, options.timeout_seconds), tool_(options.tool), channel_(std::move(channel)) {}

  const std::string tool_;
  std::unique_ptr<ControlChannel> channel_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROCESSES_MPI_SESSION_H_
