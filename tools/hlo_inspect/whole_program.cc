// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/whole_program.h"

#include <algorithm>
#include <string_view>

#include "ir/sharding/unpartitioned.h"

namespace hlokit::cli {
namespace {

constexpr std::string_view kCompiled = "hlo-run --device=v5p --timing-only --memory";

bool IsFused(const Module& module) {
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      if (i.opcode() == Opcode::kFusion) return true;
    }
  }
  return false;
}

}  // namespace

void WriteWholeProgramNote(const Module& module, TextWriter* out) {
  const int64_t devices = DevicesOfWholeProgram(module);
  if (devices > 1) *out << "  not partitioned: numbers are those of all " << devices << " devices, not of one\n";
}

void WriteUnpartitionedNote(const Module& module, TextWriter* out) {
  const int64_t devices = DevicesOfWholeProgram(module);
  if (devices > 1) {
    *out << "  not partitioned: partitioning for " << devices
         << " devices adds the communication: hlo-opt --passes=spmd\n";
  }
}

void WriteMemoryNote(const Module& module, TextWriter* out) {
  const int64_t devices = DevicesOfWholeProgram(module);
  if (devices > 1) {
    *out << "  not partitioned: bytes of all " << devices << " devices, before fusion; of one: " << kCompiled << "\n";
  } else if (!module.header().is_scheduled && !IsFused(module)) {
    *out << "  before fusion, which removes arrays; as compiled: " << kCompiled << "\n";
  }
}

void WriteWholeProgramMember(const Module& module, JsonWriter* json) {
  json->Member("whole_program_devices", DevicesOfWholeProgram(module));
}

}  // namespace hlokit::cli
