// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/hlo_proto.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "parser/proto/hlo.pb.h"
#include "parser/proto/module_writer.h"
#include "parser/proto/serialize.h"
#include "simulator/memory/heap_simulator.h"
#include "simulator/report/ascii.h"

namespace hlokit::tpu {

namespace {

// Constants with more elements are written without values; no viewer shows them.
constexpr int64_t kMaxLiteralElements = 256;

void WriteModule(const Module& module, int64_t program_id, xla::HloModuleProto* out) {
  ProtoWriteOptions options;
  options.max_literal_elements = kMaxLiteralElements;
  // A module with a part that no message holds, such as a tuple of millions of elements, is left out.
  if (!WriteModuleProto(module, options, out).ok()) out->Clear();
  out->set_id(program_id);
  bool dynamic = false;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) dynamic |= i.shape().has_dynamic_dims();
  }
  out->set_is_dynamic(dynamic);
}

constexpr int64_t kAllLeaves = -1;  // all leaves of a value in one buffer

// Appends the index of a leaf in a shape; nothing for arrays.
void AddIndexOfLeaf(Shape shape, int64_t leaf, xla::LogicalBufferProto::Location* location) {
  while (shape.IsTuple() && leaf >= 0) {
    int64_t k = 0;
    while (k < shape.tuple_size() && leaf >= shape.element(k).leaf_count()) leaf -= shape.element(k++).leaf_count();
    if (k == shape.tuple_size()) return;
    location->add_shape_index(k);
    shape = shape.element(k);
  }
}

class Buffers {
 public:
  Buffers(const ReportInput& input, const KernelPlan& plan, const ProtoIds& ids, xla::BufferAssignmentProto* out)
      : input_(input), module_(input.module), plan_(plan), memory_(input.memory), ids_(ids), out_(*out) {}

  void Write() {
    const Computation entry = module_.entry();
    absl::flat_hash_map<int64_t, int64_t> allocation_of;  // by parameter number
    for (const LiveRange& parameter : memory_.persistent) {
      const int64_t buffer = AddBuffer(parameter.value, kAllLeaves, parameter.bytes);
      xla::BufferAllocationProto* allocation = AddAllocation(buffer, parameter.bytes);
      const Instruction i = module_.instruction(parameter.value);
      allocation->set_is_constant(i.opcode() == Opcode::kConstant);
      if (i.opcode() != Opcode::kParameter) continue;
      allocation->set_is_entry_computation_parameter(true);
      allocation->set_parameter_number(i.parameter_number());
      allocation_of[i.parameter_number()] = allocation->index();
    }
    for (const AliasedResult& result : memory_.aliased) {
      const auto found = allocation_of.find(result.parameter);
      if (found == allocation_of.end()) continue;
      const int64_t buffer = AddBuffer(result.value, result.leaf, result.bytes);
      xla::BufferAllocationProto* allocation = out_.mutable_buffer_allocations(static_cast<int>(found->second));
      xla::BufferAllocationProto::Assigned* assigned = allocation->add_assigned();
      assigned->set_logical_buffer_id(buffer);
      assigned->set_size(result.bytes);
      allocation->set_maybe_live_out(true);
    }
    const int64_t at = plan_.PlanOf(entry.id());
    if (at < 0) return;
    const std::vector<ScheduleUnit>& steps = plan_.computations()[at].steps;
    const int64_t heap_index = static_cast<int64_t>(out_.buffer_allocations_size());
    xla::BufferAllocationProto* heap_allocation = out_.add_buffer_allocations();
    heap_allocation->set_index(heap_index);
    xla::HeapSimulatorTrace* trace = out_.add_heap_simulator_traces();
    trace->set_whole_module_simulation(true);
    trace->set_buffer_allocation_index(heap_index);
    std::vector<int64_t> ids(memory_.live_ranges.size(), 0);
    VisitHeap(memory_, steps.size(), [&](const HeapEvent& e) {
      const LiveRange& life = memory_.live_ranges[e.live_range];
      if (e.allocates) {
        ids[e.live_range] = AddBuffer(life.value, life.leaf, life.bytes);
        xla::BufferAllocationProto::Assigned* assigned = heap_allocation->add_assigned();
        assigned->set_logical_buffer_id(ids[e.live_range]);
        assigned->set_offset(life.offset);
        assigned->set_size(life.bytes);
      }
      xla::HeapSimulatorTrace::Event* event = trace->add_events();
      event->set_kind(e.allocates ? xla::HeapSimulatorTrace::Event::ALLOC : xla::HeapSimulatorTrace::Event::FREE);
      event->set_buffer_id(ids[e.live_range]);
      event->set_computation_name(Ascii(entry.name()));
      event->set_instruction_name(Ascii(module_.instruction(steps[e.step].root).name()));
    });
    heap_allocation->set_size(memory_.heap_bytes);
    WriteVectorMemory(steps, input_.simulation.computations[at].vmem_arrays);
  }

 private:
  // Assigns first-fit offsets in vector memory, which the plan leaves open.
  void WriteVectorMemory(const std::vector<ScheduleUnit>& steps, const std::vector<Resident>& arrays) {
    std::vector<std::vector<size_t>> begins(steps.size()), ends(steps.size());
    for (size_t a = 0; a < arrays.size(); ++a) {
      if (arrays[a].from >= steps.size() || arrays[a].bytes < 1) continue;
      begins[arrays[a].from].push_back(a);
      ends[std::min<size_t>(std::max(arrays[a].from, arrays[a].to), steps.size() - 1)].push_back(a);
    }
    // An array may leave vector memory and return between its first and last use. If the sum exceeds the capacity, no
    // allocation is written.
    double alive = 0, most = 0;
    for (size_t s = 0; s < steps.size(); ++s) {
      for (size_t a : begins[s]) alive += arrays[a].bytes;
      most = std::max(most, alive);
      for (size_t a : ends[s]) alive -= arrays[a].bytes;
    }
    if (most == 0 || most > input_.options.machine.VmemBytes()) return;
    xla::BufferAllocationProto* allocation = out_.add_buffer_allocations();
    allocation->set_index(static_cast<int64_t>(out_.buffer_allocations_size()) - 1);
    allocation->set_color(kVectorMemory);
    xla::HeapSimulatorTrace* trace = out_.add_heap_simulator_traces();
    trace->set_whole_module_simulation(true);
    trace->set_buffer_allocation_index(allocation->index());
    HeapAllocator heap;
    struct Block {
      int64_t buffer = 0;
      int64_t offset = 0;
    };
    std::vector<Block> blocks(arrays.size());
    const auto note = [&](xla::HeapSimulatorTrace::Event::Kind kind, size_t array, size_t step) {
      xla::HeapSimulatorTrace::Event* event = trace->add_events();
      event->set_kind(kind);
      event->set_buffer_id(blocks[array].buffer);
      event->set_computation_name(Ascii(module_.entry().name()));
      event->set_instruction_name(Ascii(module_.instruction(steps[step].root).name()));
    };
    for (size_t s = 0; s < steps.size(); ++s) {
      for (size_t a : begins[s]) {
        const int64_t bytes = static_cast<int64_t>(arrays[a].bytes);
        blocks[a] = {AddBuffer(arrays[a].value, 0, bytes), heap.Allocate(bytes)};
        out_.mutable_logical_buffers(out_.logical_buffers_size() - 1)->set_color(kVectorMemory);
        xla::BufferAllocationProto::Assigned* assigned = allocation->add_assigned();
        assigned->set_logical_buffer_id(blocks[a].buffer);
        assigned->set_offset(blocks[a].offset);
        assigned->set_size(bytes);
        note(xla::HeapSimulatorTrace::Event::ALLOC, a, s);
      }
      for (size_t a : ends[s]) {
        heap.Free(blocks[a].offset, static_cast<int64_t>(arrays[a].bytes));
        note(xla::HeapSimulatorTrace::Event::FREE, a, s);
      }
    }
    allocation->set_size(heap.size());
  }

  int64_t AddBuffer(InstructionId value, int64_t leaf, int64_t bytes) {
    xla::LogicalBufferProto* buffer = out_.add_logical_buffers();
    buffer->set_id(static_cast<int64_t>(out_.logical_buffers_size()));
    buffer->set_size(bytes);
    buffer->mutable_defined_at()->set_instruction_name(Ascii(module_.instruction(value).name()));
    buffer->mutable_defined_at()->set_instruction_id(ids_.of(value));
    AddIndexOfLeaf(module_.instruction(value).shape(), leaf, buffer->mutable_defined_at());
    return buffer->id();
  }
  xla::BufferAllocationProto* AddAllocation(int64_t buffer, int64_t bytes) {
    xla::BufferAllocationProto* allocation = out_.add_buffer_allocations();
    allocation->set_index(static_cast<int64_t>(out_.buffer_allocations_size()) - 1);
    allocation->set_size(bytes);
    xla::BufferAllocationProto::Assigned* assigned = allocation->add_assigned();
    assigned->set_logical_buffer_id(buffer);
    assigned->set_size(bytes);
    return allocation;
  }

  static constexpr int64_t kVectorMemory = 1;  // its color, as S(1) in layouts

  const ReportInput& input_;
  const Module& module_;
  const KernelPlan& plan_;
  const MemoryPlan& memory_;
  const ProtoIds& ids_;
  xla::BufferAssignmentProto& out_;
};

}  // namespace

std::string HloProtoBytes(const ReportInput& input, const KernelPlan& plan, int64_t program_id) {
  const ProtoIds ids = ProtoIdsOf(input.module);
  xla::HloProto proto;
  WriteModule(input.module, program_id, proto.mutable_hlo_module());
  Buffers(input, plan, ids, proto.mutable_buffer_assignment()).Write();
  return SerializedMessage(proto);
}

}  // namespace hlokit::tpu
