// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/whole_program.h"

#include <algorithm>
#include <string_view>

#include "ir/core/str_cat.h"
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
    *out << "  not partitioned: bytes of all " << devices
         << " devices, not compiled: in post-order, without fusion, padding and "
         << "recomputation; of one: " << kCompiled << "\n";
  } else if (!module.header().is_scheduled && !IsFused(module)) {
    *out << "  not compiled: in post-order, without fusion, padding and recomputation; as compiled: " << kCompiled
         << "\n";
  }
}

void WriteUncountedLoopsNote(const std::vector<Instruction>& loops, TextWriter* out) {
  constexpr size_t kMaxNamed = 4;
  if (loops.empty()) return;
  *out << "  " << Counted(loops.size(), "loop") << " of unknown trip count, of which one iteration is counted: ";
  for (size_t k = 0; k < std::min(loops.size(), kMaxNamed); ++k) *out << (k == 0 ? "" : ", ") << loops[k].name();
  *out << (loops.size() > kMaxNamed ? ", ...\n" : "\n");
}

void WriteUncountedLoops(const std::vector<Instruction>& loops, JsonWriter* json) {
  json->Key("uncounted_loops").BeginArray();
  for (const Instruction loop : loops) json->Value(loop.name());
  json->EndArray();
}

void WriteWholeProgramMember(const Module& module, JsonWriter* json) {
  json->Member("whole_program_devices", DevicesOfWholeProgram(module));
}

}  // namespace hlokit::cli
