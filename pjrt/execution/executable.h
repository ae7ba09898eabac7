// SPDX-License-Identifier: Apache-2.0
// Compiled programs: without devices (PJRT_Executable), and loaded on some (PJRT_LoadedExecutable).
#ifndef HLOKIT_PJRT_EXECUTION_EXECUTABLE_H_
#define HLOKIT_PJRT_EXECUTION_EXECUTABLE_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "pjrt/c_api/extension_args.h"
#include "pjrt/c_api/types.h"
#include "pjrt/client/client.h"
#include "pjrt/client/program_simulation.h"
#include "pjrt/execution/host_callbacks.h"
#include "pjrt/execution/program.h"
#include "pjrt/values/named_values.h"
#include "runtime/client/client.h"

namespace hlokit::pjrt {

// A program and all that callers ask about it, as lists that never move.
struct CompiledProgram {
  explicit CompiledProgram(Program program_in);

  const Program program;
  std::vector<PJRT_Buffer_Type> result_types;
  std::vector<int64_t> result_dims;  // of all results, one after the other
  std::vector<size_t> result_ranks;
  std::vector<const char*> result_memory_kinds, parameter_memory_kinds;
  std::vector<size_t> result_memory_kind_sizes, parameter_memory_kind_sizes;
  std::vector<const char*> result_shardings, parameter_shardings;  // serialized OpSharding
  std::vector<size_t> result_sharding_sizes, parameter_sharding_sizes;
  std::vector<PJRT_Layouts_MemoryLayout*> result_layouts, parameter_layouts;
  std::vector<int64_t> donatable;  // numbers of parameters
  // Dynamic dimensions of all parameters, and of all results, whose sizes are arguments and results behind the others.
  size_t parameter_sizes = 0, result_sizes = 0;

  // Made when they are first asked for.
  const NamedValues& CostProperties() const;
  // Of a program for a simulated device; null for others, and if it cannot be simulated.
  const SimulatedCosts* Simulated() const;
  // A HloModuleProtoWithConfig.
  absl::StatusOr<const std::string*> OptimizedProgram() const;
  // The program as it runs, if it is loaded.
  std::shared_ptr<runtime::Executable> loaded;
  // The simulated device that it is for, "v5p:2x2x1"; "": none.
  std::string simulated_device;
  // The loaded program has the parameters and results of the program, and no sizes besides.
  bool loaded_as_given = true;
  // The program as it runs, if it is loaded and has the same parameters and results; otherwise as it is.
  const Module& ShownModule() const;

 private:
  mutable std::mutex mutex_;  // of cost_ and optimized_
  mutable std::unique_ptr<NamedValues> cost_;
  mutable std::once_flag simulated_once_;
  mutable std::optional<SimulatedCosts> simulated_;
  mutable std::optional<absl::StatusOr<std::string>> optimized_;
};

// Compiles and loads. Returns an error for devices that the client does not have.
absl::StatusOr<PJRT_LoadedExecutable*> Load(PJRT_Client* client, Program program);

}  // namespace hlokit::pjrt

struct PJRT_Executable {
  std::shared_ptr<const hlokit::pjrt::CompiledProgram> compiled;
};

struct PJRT_LoadedExecutable {
  PJRT_Client* client = nullptr;
  std::shared_ptr<const hlokit::pjrt::CompiledProgram> compiled;
  std::shared_ptr<hlokit::runtime::Executable> runtime;
  std::shared_ptr<hlokit::pjrt::HostCallbacks>
      callbacks;                          // null: the program has no transfers from and to the host, and no typed calls
  std::vector<PJRT_Device*> all_devices;  // by replica, then partition; one that stands for any if portable
  std::vector<PJRT_Device*> devices;      // those of this process
  std::vector<PJRT_LogicalDeviceIds> logical_ids;  // of `devices`
  bool portable = false;
  // A call waits for the run, whose error is the call's, as XLA's CPU client does with small programs: what a callback
  // raises belongs to the call, and an ordered effect does not pass it on to the next program.
  bool waits = false;
  size_t logged = 0;  // position in the client's simulation log, if it has one
  std::atomic<bool> deleted{false};
};

#endif  // HLOKIT_PJRT_EXECUTION_EXECUTABLE_H_
