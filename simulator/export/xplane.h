// SPDX-License-Identifier: Apache-2.0
// Executions on a simulated TPU as an XSpace, the profile that TensorBoard's profile plugin (XProf) opens: a plane for
// each device with its peak rates and the lines Steps, XLA Modules, XLA Ops and Async XLA Ops; the host's threads; the
// programs with their buffer assignment for the graph viewer, memory viewer and op profile; the task environment.
#ifndef HLOKIT_SIMULATOR_EXPORT_XPLANE_H_
#define HLOKIT_SIMULATOR_EXPORT_XPLANE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "simulator/export/timeline.h"
#include "simulator/timing/host.h"

namespace hlokit::tpu {

struct ProfileProgram {
  const ReportInput* input = nullptr;
  const KernelPlan* plan = nullptr;
};

// One execution of a program.
struct ProgramExecution {
  size_t program = 0;
  double start = 0;  // seconds
  int64_t step = 0;
  int64_t device = -1;  // negative: all devices
};

// An interval on a host thread.
struct HostSpan {
  std::string name;
  double start = 0;
  double duration = 0;
  int64_t step = -1;   // its step; negative: none
  bool root = false;   // the step itself; on one thread only
  int64_t run = -1;    // the execution that it starts on the device, index into ProfileSpace::runs
  std::string source;  // "train.py:12"; "": unknown
  // Links between threads, from which XProf tells the step of an execution: a step's root leads to calls, a call to the
  // runtime's span of the execution, that to the module on the device. Numbers of steps and calls; negative: none.
  int64_t opens_step = -1;  // the root of this step
  int64_t in_step = -1;     // belongs to this step of another thread
  int64_t makes_call = -1;
  int64_t takes_call = -1;
  int64_t framework_call = 0;  // the number of the framework's profiler for the call that it carries out; 0: none
};
struct HostThread {
  std::string name;
  std::vector<HostSpan> spans;
  int64_t device = -1;     // that it runs, if each device has a thread; negative: none
  bool straggler = false;  // the device is slower than the others
};

struct ProfileSpace {
  std::vector<ProfileProgram> programs;
  std::vector<ProgramExecution> runs;
  std::vector<HostThread> threads;
  int64_t devices = 1;  // number of planes
  std::string hostname = "hlokit";
  int64_t start_unix_ns = 0;
  // A framework collects the space from a plugin: it subtracts its own start from absolute times, which in picoseconds
  // overflow in files, and merges the host's plane with its own.
  bool of_plugin = false;
  double seconds = 0;
  size_t max_events = 200000;  // per device and run

  int64_t line_start_ns() const { return of_plugin ? start_unix_ns : 0; }
};

// Returns the serialized XSpace. Equal spaces give equal bytes.
std::string XSpaceBytes(const ProfileSpace& space);

// Builds the space of a program that runs under the host model.
ProfileSpace BuildProfileSpace(const ProfileProgram& program, const HostModel& host, int64_t devices,
                               size_t max_events);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_XPLANE_H_
