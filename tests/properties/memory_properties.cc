// SPDX-License-Identifier: Apache-2.0
// Properties of the memory plan of every valid module on a simulated TPU, as given and compiled:
//   bound      the peak is at least the bytes that are live between any two steps, counted from the uses alone
//   addresses  buffers that are live at once do not overlap, nor do arrays in one buffer: each is dead before the next
//   numbers    report, buffer assignment and allocator events of a profile have the same peak
//
//   memory_properties [--device=NAME] [--pipeline=PASSES] FILE|DIR…
//
// Files that do not parse, verify or compile are skipped. Prints each failure and, for each property, the number of
// modules checked; exit code 1 if one failed.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "io/files/read_file.h"
#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "parser/proto/hlo.pb.h"
#include "passes/target/aliases.h"
#include "runtime/observe/xplane.pb.h"
#include "simulator/export/hlo_proto.h"
#include "simulator/export/xplane.h"
#include "simulator/memory/heap_simulator.h"
#include "simulator/memory/memory_plan.h"
#include "simulator/timing/compile.h"
#include "tests/properties/hlo_files.h"

namespace hlokit::tpu {
namespace {

constexpr size_t kMaxSteps = 2000;  // of an entry computation
constexpr int64_t kMaxBytes = int64_t{1} << 50;

struct Outcome {
  int64_t held = 0;
  int64_t failed = 0;
};

// A step of the entry whose result is one array in HBM, with its last direct use by a step.
struct Array {
  int64_t bytes = 0;
  size_t from = 0;
  size_t to = 0;
};

class Checker {
 public:
  explicit Checker(std::string device) : machine_(*BuiltinDeviceDescription(device)) {}

  void Check(const std::string& path, const std::string& pipeline) {
    path_ = path;
    const absl::StatusOr<std::shared_ptr<const SourceBuffer>> source = ReadFile(path);
    DiagnosticSink sink;
    std::unique_ptr<Module> module = source.ok() ? ParseModule(*source, {}, &sink) : nullptr;
    if (module != nullptr) VerifyModule(*module, VerifierOptions(), &sink);
    if (module == nullptr || sink.has_errors()) return;
    SimulationOptions options;
    options.machine = machine_;
    options.topology = TopologyFor(machine_, DevicesOf(*module));
    if (!pipeline.empty() && !Compile(options, pipeline, module.get()).ok()) return;
    const KernelPlan plan(*module);
    const int64_t entry = plan.PlanOf(module->entry().id());
    if (entry < 0 || plan.computations()[entry].steps.size() > kMaxSteps) return;
    const Simulation simulation = Simulate(*module, plan, options);
    const MemoryPlan memory = PlanMemory(machine_, *module, plan, simulation.implicit_partitions);
    if (memory.peak_bytes > kMaxBytes) return;
    CheckBound(*module, plan, simulation.implicit_partitions, memory);
    CheckAddresses(*module, plan, simulation.implicit_partitions, memory);
    CheckNumbers({*module, options, simulation, memory}, plan, memory);
  }

  bool Report() const {
    bool good = !outcomes_.empty();
    for (const auto& [property, outcome] : outcomes_) {
      std::printf("%s: %lld of %lld\n", property.c_str(), static_cast<long long>(outcome.held),
                  static_cast<long long>(outcome.held + outcome.failed));
      good = good && outcome.failed == 0;
    }
    return good;
  }

 private:
  void Expect(bool held, const std::string& property, const std::string& what) {
    Outcome& outcome = outcomes_[property];
    ++(held ? outcome.held : outcome.failed);
    if (!held) std::printf("%s: %s: %s\n", path_.c_str(), property.c_str(), what.c_str());
  }

  // Returns the steps that read this array as an operand, through names of the same bytes but not through tuples.
  static size_t LastUse(const KernelPlan& plan, Instruction value, size_t step) {
    size_t last = step;
    std::vector<Instruction> open = {value};
    while (!open.empty()) {
      const Instruction name = open.back();
      open.pop_back();
      for (const auto [user, index] : name.uses()) {
        if (const uint32_t at = plan.StepOf(user.id()); at != ComputationPlan::kNoStep) {
          last = std::max<size_t>(last, at);
        } else if (IsAlias(user) && index == 0) {
          open.push_back(user);
        }
      }
    }
    return last;
  }

  void CheckBound(const Module& module, const KernelPlan& plan, double parts, const MemoryPlan& memory) {
    const ArraySizes sizes(machine_, parts);
    const std::vector<ScheduleUnit>& steps = plan.computations()[plan.PlanOf(module.entry().id())].steps;
    std::vector<int64_t> alive(steps.size(), 0);  // after each step
    const auto add = [&](Instruction value, size_t from) {
      const size_t last = LastUse(plan, value, from);
      for (size_t s = from; s < last; ++s) alive[s] = SaturatingAdd(alive[s], sizes.Padded(value.shape()));
    };
    for (size_t s = 0; s < steps.size(); ++s) {
      const Instruction root = module.instruction(steps[s].root);
      // Asynchronous operations and aliases of operands have no array of their own.
      if (root.shape().IsArray() && !HasTrait(root.opcode(), kEndsAsync) && !HasTrait(root.opcode(), kStartsAsync)) {
        add(root, s);
      }
    }
    const ModuleHeader& header = module.header();
    int64_t parameters = memory.parameter_bytes;
    // Results can be in the memory of donated parameters.
    for (int64_t k = 0; k < module.entry().parameter_count(); ++k) {
      const auto donates = [k](const auto& entry) { return entry.parameter == k; };
      if (std::any_of(header.input_output_alias.begin(), header.input_output_alias.end(), donates) ||
          std::any_of(header.buffer_donor.begin(), header.buffer_donor.end(), donates)) {
        parameters -= sizes.PaddedSum(module.entry().parameter(k).shape());
      }
    }
    const int64_t most = alive.empty() ? 0 : *std::max_element(alive.begin(), alive.end());
    Expect(memory.peak_bytes >= SaturatingAdd(parameters, most), "bound",
           StrCat("peak ", memory.peak_bytes, ", live ", SaturatingAdd(parameters, most)));
    Expect(memory.peak_bytes >= memory.parameter_bytes, "bound", "less than the parameters");
  }

  void CheckAddresses(const Module& module, const KernelPlan& plan, double parts, const MemoryPlan& memory) {
    std::map<int64_t, int64_t> blocks;  // end by offset
    bool apart = true;
    int64_t highest = 0;
    VisitHeap(memory, memory.timeline.size(), [&](const HeapEvent& e) {
      const LiveRange& range = memory.live_ranges[e.live_range];
      if (!e.allocates) {
        blocks.erase(range.offset);
        return;
      }
      const int64_t end = SaturatingAdd(range.offset, range.bytes);
      const auto next = blocks.lower_bound(range.offset);
      if (next != blocks.end() && next->first < end) apart = false;
      if (next != blocks.begin() && std::prev(next)->second > range.offset) apart = false;
      blocks[range.offset] = end;
      highest = std::max(highest, end);
    });
    Expect(apart && highest == memory.heap_bytes, "addresses", "blocks of the heap overlap");
    const ArraySizes sizes(machine_, parts);
    BufferSharing sharing;
    for (const ComputationPlan& computation : plan.computations()) {
      const bool entry = module.computation(computation.computation).is_entry();
      const BufferAssignment buffers = AssignBuffers(
          module, plan, computation, entry ? ComputationRole::kEntry : ComputationRole::kCallee, sizes, &sharing);
      for (const AssignedBuffer& buffer : buffers.buffers) {
        for (size_t k = 0; k + 1 < buffer.arrays.size(); ++k) {
          const Instruction value = module.instruction(buffer.arrays[k].value);
          if (!value.shape().IsArray() || HasTrait(value.opcode(), kStartsAsync)) continue;
          const size_t last = LastUse(plan, value, buffer.arrays[k].from);
          Expect(last <= buffer.arrays[k + 1].from, "addresses",
                 StrCat(value.name(), " is overwritten at step ", buffer.arrays[k + 1].from, ", read at ", last));
        }
      }
    }
  }

  // Returns the peak of parameters, constants and the heap trace.
  static int64_t AssignedPeak(const std::string& bytes) {
    xla::HloProto proto;
    if (!proto.ParseFromString(bytes)) return -1;
    const xla::BufferAssignmentProto& buffers = proto.buffer_assignment();
    std::map<int64_t, int64_t> size_of;
    for (const xla::LogicalBufferProto& buffer : buffers.logical_buffers()) size_of[buffer.id()] = buffer.size();
    int64_t fixed = 0;
    int64_t most = 0;
    for (const xla::BufferAllocationProto& allocation : buffers.buffer_allocations()) {
      const xla::HeapSimulatorTrace* trace = nullptr;
      for (const xla::HeapSimulatorTrace& t : buffers.heap_simulator_traces()) {
        if (t.buffer_allocation_index() == allocation.index()) trace = &t;
      }
      if (allocation.color() != 0) continue;
      // Memory viewers add what lives throughout to the peak of the trace: they would count it twice, or not at all.
      const bool throughout =
          allocation.is_entry_computation_parameter() || allocation.is_constant() || allocation.maybe_live_out();
      if (throughout == (trace != nullptr)) return -1;
      if (trace == nullptr) {
        fixed = SaturatingAdd(fixed, allocation.size());
        continue;
      }
      int64_t live = 0;
      for (const xla::HeapSimulatorTrace::Event& event : trace->events()) {
        const int64_t size = size_of[event.buffer_id()];
        live += event.kind() == xla::HeapSimulatorTrace::Event::ALLOC ? size : -size;
        most = std::max(most, live);
      }
    }
    return SaturatingAdd(fixed, most);
  }

  static int64_t AllocatorPeak(const std::string& bytes) {
    tensorflow::profiler::XSpace space;
    if (!space.ParseFromString(bytes)) return -1;
    int64_t most = 0;
    for (const tensorflow::profiler::XPlane& plane : space.planes()) {
      int64_t peak_stat = -1;
      for (const auto& [id, metadata] : plane.stat_metadata()) {
        if (metadata.name() == "peak_bytes_in_use") peak_stat = id;
      }
      for (const tensorflow::profiler::XLine& line : plane.lines()) {
        for (const tensorflow::profiler::XEvent& event : line.events()) {
          for (const tensorflow::profiler::XStat& stat : event.stats()) {
            if (stat.metadata_id() == peak_stat) most = std::max(most, stat.int64_value());
          }
        }
      }
    }
    return most;
  }

  void CheckNumbers(const ReportInput& input, const KernelPlan& plan, const MemoryPlan& memory) {
    const int64_t assigned = AssignedPeak(HloProtoBytes(input, plan, 1));
    Expect(assigned == memory.peak_bytes, "numbers",
           StrCat("buffer assignment ", assigned, ", report ", memory.peak_bytes));
    const absl::StatusOr<HostModel> host = ParseHostModel("steps=2", 1e-6, machine_.host_rate);
    if (!host.ok()) return;
    const int64_t allocated = AllocatorPeak(XSpaceBytes(BuildProfileSpace({&input, &plan}, *host, 1, 100)));
    Expect(allocated == memory.peak_bytes, "numbers", StrCat("allocator ", allocated, ", report ", memory.peak_bytes));
    int64_t listed = 0;
    for (const LiveArray& array : memory.live) listed = SaturatingAdd(listed, array.bytes);
    Expect(listed == memory.peak_bytes, "numbers", StrCat("listed ", listed, ", report ", memory.peak_bytes));
  }

  const DeviceDescription machine_;
  std::string path_;
  std::map<std::string, Outcome> outcomes_;
};

int Main(int count, char** arguments) {
  std::string device = "v5e";
  std::vector<std::string> pipelines = {""};
  std::vector<std::string> paths;
  for (int k = 1; k < count; ++k) {
    const std::string argument = arguments[k];
    if (argument.rfind("--device=", 0) == 0) {
      device = argument.substr(9);
    } else if (argument.rfind("--pipeline=", 0) == 0) {
      pipelines.push_back(argument.substr(11));
    } else {
      paths.push_back(argument);
    }
  }
  Checker checker(device);
  for (const std::string& file : HloFiles(paths)) {
    for (const std::string& pipeline : pipelines) checker.Check(file, pipeline);
  }
  return checker.Report() ? 0 : 1;
}

}  // namespace
}  // namespace hlokit::tpu

int main(int count, char** arguments) { return hlokit::tpu::Main(count, arguments); }
