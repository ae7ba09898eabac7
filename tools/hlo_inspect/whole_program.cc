// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/whole_program.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "ir/core/str_cat.h"
#include "ir/sharding/unpartitioned.h"
#include "passes/analysis/annotation_custom_calls.h"
#include "passes/target/custom_call_cost.h"
#include "passes/target/device_description.h"

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

Cost StatedCost(Instruction custom_call) {
  // The operations do not depend on the device.
  static const tpu::DeviceDescription* const kDevice =
      new tpu::DeviceDescription(tpu::BuiltinDeviceDescription("v5e").value_or(tpu::DeviceDescription()));
  const tpu::CustomCallWork work = tpu::WorkOfCustomCall(*kDevice, custom_call);
  constexpr double kMax = 9e18;
  Cost cost;
  if (!work.known && work.flops <= 0) return cost;
  cost.flops = static_cast<int64_t>(std::min(work.flops, kMax));
  cost.transcendentals = static_cast<int64_t>(std::min(work.transcendentals, kMax));
  return cost;
}

namespace {

struct CustomCalls {
  int64_t with_cost = 0;
  int64_t without_cost = 0;
  std::map<std::string, int64_t> targets;  // of those without
};

CustomCalls CountCustomCalls(const Module& module) {
  CustomCalls calls;
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      if (i.opcode() != Opcode::kCustomCall || IsAnnotationCustomCall(i)) continue;
      if (StatedCost(i) != Cost()) {
        ++calls.with_cost;
      } else {
        ++calls.without_cost;
        ++calls.targets[std::string(i.string_attr(Attr::kCustomCallTarget))];
      }
    }
  }
  return calls;
}

}  // namespace

void WriteCustomCallsNote(const Module& module, TextWriter* out) {
  const CustomCalls calls = CountCustomCalls(module);
  if (calls.with_cost > 0) {
    *out << "  " << Counted(calls.with_cost, "custom-call")
         << " with operations that the call states, which are counted\n";
  }
  if (calls.without_cost == 0) return;
  *out << "  " << Counted(calls.without_cost, "custom-call") << " of unknown operations, counted as 0:";
  constexpr size_t kMaxTargets = 4;
  size_t shown = 0;
  for (const auto& [target, count] : calls.targets) {
    if (shown++ == kMaxTargets) break;
    *out << (shown == 1 ? " " : ", ") << target;
  }
  *out << (calls.targets.size() > kMaxTargets ? ", ...\n" : "\n");
}

void WriteCustomCalls(const Module& module, JsonWriter* json) {
  const CustomCalls calls = CountCustomCalls(module);
  json->Key("custom_calls").BeginObject().Member("with_cost", calls.with_cost);
  json->Member("without_cost", calls.without_cost).EndObject();
}

void WriteWholeProgramMember(const Module& module, JsonWriter* json) {
  json->Member("whole_program_devices", DevicesOfWholeProgram(module));
}

}  // namespace hlokit::cli
