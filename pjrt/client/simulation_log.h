// SPDX-License-Identifier: Apache-2.0
// What the programs of a client would take on the simulated TPU that it stands for. For each program a report, as text
// and as JSON (docs/tpu.md), and summary.json with how often each ran:
//
//   {"device": "v5p:2x2x1", "programs": [{"number": 1, "name": "jit_step", "runs": 8, "step_seconds": 0.0123,
//    "total_seconds": 0.0984, "report": "0001.jit_step.json"}], "total_seconds": 0.0984}
//
// The summary is written anew after 1, 2, 4, 8, ... runs of a program, and when the client ends: callers need not end
// it.
#ifndef HLOKIT_PJRT_CLIENT_SIMULATION_LOG_H_
#define HLOKIT_PJRT_CLIENT_SIMULATION_LOG_H_

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "ir/graph/module.h"

namespace hlokit::pjrt {

class SimulationLog {
 public:
  // `device`: "v5p:4x4x4". Creates the directory if need be.
  SimulationLog(std::string directory, std::string device);
  ~SimulationLog();
  SimulationLog(const SimulationLog&) = delete;
  SimulationLog& operator=(const SimulationLog&) = delete;

  // Simulates a program for one device, before optimization, and writes its report. Returns its position in the log.
  // A program that cannot be simulated has a report that says why.
  absl::StatusOr<size_t> AddProgram(const Module& module);
  // Counts a run.
  void AddRun(size_t program);

 private:
  struct ProgramRuns {
    std::string name;
    std::string report;  // file name
    double step_seconds = 0;
    int64_t runs = 0;
  };
  // Requires: the lock.
  absl::Status WriteSummary() const;

  const std::string directory_;
  const std::string device_;
  mutable std::mutex mutex_;
  std::deque<ProgramRuns> programs_;
};

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_CLIENT_SIMULATION_LOG_H_
