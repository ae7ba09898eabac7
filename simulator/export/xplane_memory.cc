// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/xplane_memory.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "simulator/memory/heap_simulator.h"
#include "simulator/report/ascii.h"
#include "simulator/report/number_text.h"

namespace hlokit::tpu {

namespace {

namespace proto = ::tensorflow::profiler;

// Returns the number of TensorFlow's DataType (types.proto), or 0.
int64_t DataType(ElementType type) {
  static constexpr std::pair<ElementType, int64_t> kTypes[] = {
      {ElementType::kF32, 1},   {ElementType::kF64, 2},       {ElementType::kS32, 3},  {ElementType::kU8, 4},
      {ElementType::kS16, 5},   {ElementType::kS8, 6},        {ElementType::kC64, 8},  {ElementType::kS64, 9},
      {ElementType::kPred, 10}, {ElementType::kBF16, 14},     {ElementType::kU16, 17}, {ElementType::kC128, 18},
      {ElementType::kF16, 19},  {ElementType::kU32, 22},      {ElementType::kU64, 23}, {ElementType::kF8E5M2, 24},
      {ElementType::kS4, 29},   {ElementType::kF8E4M3FN, 25}, {ElementType::kU4, 30}};
  for (const auto& [ours, theirs] : kTypes) {
    if (ours == type) return theirs;
  }
  return 0;
}

constexpr int64_t kWhole = -1;  // all leaves of a parameter in one block

// Returns the shape of a leaf, or of the whole.
Shape LeafOf(Shape shape, int64_t leaf) {
  while (shape.IsTuple() && leaf >= 0) {
    int64_t k = 0;
    while (k < shape.tuple_size() && leaf >= shape.element(k).leaf_count()) leaf -= shape.element(k++).leaf_count();
    if (k == shape.tuple_size()) break;
    shape = shape.element(k);
  }
  return shape;
}

class Allocator {
 public:
  Allocator(const ProfileSpace& space, int64_t line, PlaneWriter* host) : space_(space), host_(*host) {
    const ReportInput& input = *space.programs[0].input;
    limit_ = static_cast<int64_t>(std::min(input.memory.limit_bytes, 9e18));
    host_.Line(line, "allocator of TPU:0")->set_timestamp_ns(space.line_start_ns());
    line_ = host_.plane().lines_size() - 1;
  }

  void Run() {
    size_t events = 0;
    for (size_t run = 0; run < space_.runs.size(); ++run) {
      const size_t program = space_.runs[run].program;
      events += 2 * space_.programs[program].input->memory.live_ranges.size();
      if (run > 0 && events > space_.max_events) return;
      // Results are freed when the next execution begins, arguments when another program runs.
      Free(&results_, space_.runs[run], "output");
      Load(program, space_.runs[run]);
      Execute(program, space_.runs[run]);
    }
  }

 private:
  struct Block {
    const ReportInput* input;
    InstructionId value;
    int64_t leaf;  // or kWhole
    int64_t bytes;
    int64_t address;
    bool reserved;  // temporary of the execution
  };

  void Free(std::vector<Block>* blocks, const ProgramExecution& run, const std::string& region) {
    for (const Block& block : *blocks) Note(false, block, run.start, region);
    blocks->clear();
  }

  // Allocates the arguments of the program.
  void Load(size_t program, const ProgramExecution& run) {
    if (loaded_ == static_cast<int64_t>(program)) return;
    loaded_ = static_cast<int64_t>(program);
    Free(&arguments_, run, "parameter");
    const ReportInput& input = *space_.programs[program].input;
    for (const LiveRange& life : input.memory.persistent) {
      if (life.bytes <= 0) continue;
      const Block block{&input, life.value, kWhole, life.bytes, life.offset, false};
      Note(true, block, run.start, "parameter");
      arguments_.push_back(block);
    }
  }

  void Execute(size_t program, const ProgramExecution& run) {
    const ReportInput& input = *space_.programs[program].input;
    const KernelPlan& plan = *space_.programs[program].plan;
    const int64_t entry = plan.PlanOf(input.module.entry().id());
    if (entry < 0) return;
    const std::vector<StepTime>& times = input.simulation.computations[entry].steps;
    VisitHeap(input.memory, times.size(), [&](const HeapEvent& e) {
      const LiveRange& life = input.memory.live_ranges[e.live_range];
      const StepTime& time = times[e.step];
      const bool result = life.to >= times.size();
      const int64_t address = input.memory.parameter_bytes + life.offset;
      const Block block{&input, life.value, life.leaf, life.bytes, address, !result};
      Note(e.allocates, block, run.start + time.start + (e.allocates ? 0 : time.duration), result ? "output" : "temp");
      if (e.allocates && result) results_.push_back(block);
    });
  }

  void Note(bool allocates, const Block& block, double seconds, const std::string& region) {
    // Off-core steps end in a different order than they free.
    now_ = std::max(now_, seconds);
    int64_t& in_use = block.reserved ? reserved_ : allocated_;
    in_use += allocates ? block.bytes : -block.bytes;
    peak_ = std::max(peak_, reserved_ + allocated_);
    const Instruction i = block.input->module.instruction(block.value);
    proto::XEvent* event = host_.plane().mutable_lines(line_)->add_events();
    event->set_metadata_id(host_.EventNamed(allocates ? "MemoryAllocation" : "MemoryDeallocation"));
    event->set_offset_ps(Picoseconds(now_));
    host_.Stat(event, "index_on_host", int64_t{0});
    host_.Stat(event, "bytes_reserved", reserved_);
    host_.Stat(event, "bytes_allocated", allocated_);
    host_.Stat(event, "bytes_available", std::max<int64_t>(0, limit_ - reserved_ - allocated_));
    const MemoryPlan& memory = block.input->memory;
    host_.Stat(event, "fragmentation",
               Share(static_cast<double>(memory.fragmentation_bytes()), static_cast<double>(memory.heap_bytes)));
    host_.Stat(event, "peak_bytes_in_use", peak_);
    host_.Stat(event, "requested_bytes", block.bytes);
    host_.Stat(event, "allocation_bytes", block.bytes);
    host_.Stat(event, "addr", block.address);
    host_.Stat(event, "tf_op", Ascii(ScopeOf(i).empty() ? i.name() : ScopeOf(i)));
    host_.Stat(event, "region_type", region);
    const Shape shape = LeafOf(i.shape(), block.leaf);
    host_.Stat(event, "data_type", shape.IsArray() ? DataType(shape.element_type()) : 0);
    host_.Stat(event, "shape", ToString(shape, /*with_layout=*/false));
  }

  const ProfileSpace& space_;
  PlaneWriter& host_;
  int line_ = 0;
  int64_t limit_ = 0;
  int64_t loaded_ = -1;  // the program whose arguments are allocated
  std::vector<Block> arguments_;
  std::vector<Block> results_;  // of the previous execution
  int64_t reserved_ = 0;
  int64_t allocated_ = 0;
  int64_t peak_ = 0;
  double now_ = 0;
};

}  // namespace

void WriteMemoryEvents(const ProfileSpace& space, int64_t line, PlaneWriter* host) {
  if (!space.programs.empty()) Allocator(space, line, host).Run();
}

}  // namespace hlokit::tpu
