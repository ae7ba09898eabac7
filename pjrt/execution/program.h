// SPDX-License-Identifier: Apache-2.0
// Programs as callers give them: StableHLO, as text or as a portable artifact, and serialized HloModuleProto, with
// compile options; read, partitioned, and described for callers. What depends on devices is in executable.h.
#ifndef HLOKIT_PJRT_EXECUTION_PROGRAM_H_
#define HLOKIT_PJRT_EXECUTION_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "pjrt/client/buffer.h"
#include "runtime/client/client.h"

namespace hlokit::pjrt {

// The fields of a CompileOptionsProto that matter here.
struct CompileOptions {
  std::string serialized;  // the message itself
  int64_t num_replicas = 1;
  int64_t num_partitions = 1;
  bool portable = false;  // for whichever device runs it
  bool use_spmd_partitioning = false;
  std::vector<bool> propagate_to_outputs;     // one for all, or one each
  std::vector<bool> propagate_to_parameters;  // the same
  std::vector<int> devices;                   // by replica, then partition; empty: not given
  int64_t device_ordinal = -1;                // without `devices`; -1: not given
  std::string dump_to;                        // "": nowhere
  bool dump_as_text = false, dump_as_proto = false;
};

absl::StatusOr<CompileOptions> ReadCompileOptions(std::string_view serialized);

// A parameter or result of a program for one device, tuples flattened.
struct ProgramValue {
  BufferSpec spec;
  std::string sharding;  // serialized OpSharding; "": replicated
  bool donatable = false;
  size_t memory_kind = 0;  // position in kMemoryKinds
};

struct Program {
  std::unique_ptr<Module> module;    // for one device, before optimization
  std::unique_ptr<Module> received;  // before it was partitioned, if asked for
  std::string name;
  std::string fingerprint;
  CompileOptions options;
  std::vector<ProgramValue> parameters;
  std::vector<ProgramValue> results;
};

// Reads a program of a format ("mlir" or "hlo"), and partitions it as the options say. Keeps what it received if
// `keep_received` is set or the options name a folder for it. Errors have the position in the program.
absl::StatusOr<Program> ReadProgram(std::string_view code, std::string_view format, CompileOptions options,
                                    bool keep_received = false);

// The form that is stored: reading it gives the same program, with its own options or others.
std::string SerializeProgram(const Program& program);
absl::StatusOr<Program> DeserializeProgram(std::string_view serialized,
                                           std::optional<std::string_view> options = std::nullopt);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_EXECUTION_PROGRAM_H_
