// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/export/hlo_proto.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "interp/tpu/export/hlo.pb.h"
#include "interp/tpu/export/hlo_instruction_proto.h"
#include "interp/tpu/export/shape_proto.h"
#include "interp/tpu/memory/heap_simulator.h"
#include "interp/tpu/report/ascii.h"
#include "ir/graph/traversal.h"

namespace hlokit::tpu {

namespace {

void WriteProgramShape(Computation computation, xla::ProgramShapeProto* out) {
  for (int64_t k = 0; k < computation.parameter_count(); ++k) {
    WriteShape(computation.parameter(k).shape(), out->add_parameters());
    out->add_parameter_names(Ascii(computation.parameter(k).name()));
  }
  WriteShape(computation.root().shape(), out->mutable_result());
}

void WriteStackFrames(const Context& context, const StackFrames& frames, xla::StackFrameIndexProto* out) {
  for (StringId name : frames.file_names) out->add_file_names(Ascii(context.str(name)));
  for (StringId name : frames.function_names) out->add_function_names(Ascii(context.str(name)));
  for (const FileLocation& location : frames.file_locations) {
    xla::StackFrameIndexProto::FileLocation* to = out->add_file_locations();
    to->set_file_name_id(location.file_name_id);
    to->set_function_name_id(location.function_name_id);
    to->set_line(location.line);
    to->set_column(location.column);
  }
  for (const StackFrame& frame : frames.stack_frames) {
    xla::StackFrameIndexProto::StackFrame* to = out->add_stack_frames();
    to->set_file_location_id(frame.file_location_id);
    to->set_parent_frame_id(frame.parent_frame_id);
  }
}

void WriteHeader(const Module& module, xla::HloModuleProto* out) {
  const ModuleHeader& header = module.header();
  const Context& context = module.context();
  for (const InputOutputAlias& alias : header.input_output_alias) {
    xla::HloInputOutputAliasProto::Entry* entry = out->mutable_input_output_alias()->add_entries();
    for (int64_t k : context.list(alias.output_index)) entry->add_output_shape_index(k);
    entry->set_parameter_number(alias.parameter);
    for (int64_t k : context.list(alias.parameter_index)) entry->add_parameter_shape_index(k);
    entry->set_kind(alias.must_alias ? 2 : 1);
  }
  for (const BufferDonor& donor : header.buffer_donor) {
    xla::HloBufferDonorProto::Entry* entry = out->mutable_buffer_donor()->add_entries();
    entry->set_parameter_number(donor.parameter);
    for (int64_t k : context.list(donor.parameter_index)) entry->add_parameter_shape_index(k);
  }
  if (header.frontend_attributes) {
    WriteFrontendAttributes(context, header.frontend_attributes, out->mutable_frontend_attributes());
  }
  if (!header.stack_frames.empty()) {
    WriteStackFrames(context, header.stack_frames, out->mutable_stack_frame_index());
  }
  bool dynamic = false;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) dynamic |= i.shape().has_dynamic_dims();
  }
  out->set_is_dynamic(dynamic);
}

void WriteModule(const Module& module, const KernelPlan& plan, int64_t program_id, xla::HloModuleProto* out) {
  out->set_name(Ascii(module.name()));
  out->set_id(program_id);
  const ComputationRoles roles = RolesOf(module);
  for (ComputationId id : ComputationPostOrder(module)) {
    const Computation c = module.computation(id);
    xla::HloComputationProto* computation = out->add_computations();
    computation->set_name(Ascii(c.name()));
    computation->set_id(IdOf(c.id()));
    computation->set_root_id(IdOf(c.root().id()));
    computation->set_is_fusion_computation(roles.fusion[id.value] != 0);
    if (c.execution_thread() != "main") computation->set_execution_thread(Ascii(c.execution_thread()));
    WriteProgramShape(c, computation->mutable_program_shape());
    // Passes leave instructions in any order; readers expect operands first.
    for (InstructionId at : PostOrder(c)) WriteInstruction(module.instruction(at), computation->add_instructions());
  }
  out->set_entry_computation_name(Ascii(module.entry().name()));
  out->set_entry_computation_id(IdOf(module.entry().id()));
  WriteProgramShape(module.entry(), out->mutable_host_program_shape());
  WriteHeader(module, out);
  for (const ComputationPlan& computation : plan.computations()) {
    xla::HloScheduleProto::InstructionSequence& sequence =
        (*out->mutable_schedule()->mutable_sequences())[IdOf(computation.computation)];
    for (const ScheduleUnit& step : computation.steps) sequence.add_instruction_ids(IdOf(step.root));
  }
}

class Buffers {
 public:
  Buffers(const ReportInput& input, const KernelPlan& plan, xla::BufferAssignmentProto* out)
      : input_(input), module_(input.module), plan_(plan), memory_(input.memory), out_(*out) {}

  void Write() {
    const Computation entry = module_.entry();
    absl::flat_hash_map<int64_t, int64_t> allocation_of;  // by parameter number
    for (const LiveRange& parameter : memory_.persistent) {
      const int64_t buffer = AddBuffer(parameter.value, parameter.bytes);
      xla::BufferAllocationProto* allocation = AddAllocation(buffer, parameter.bytes);
      const Instruction i = module_.instruction(parameter.value);
      if (i.opcode() != Opcode::kParameter) continue;
      allocation->set_is_entry_computation_parameter(true);
      allocation->set_parameter_number(i.parameter_number());
      allocation_of[i.parameter_number()] = allocation->index();
    }
    for (const AliasedResult& result : memory_.aliased) {
      const auto found = allocation_of.find(result.parameter);
      if (found == allocation_of.end()) continue;
      const int64_t buffer = AddBuffer(result.value, result.bytes);
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
        ids[e.live_range] = AddBuffer(life.value, life.bytes);
        xla::BufferAllocationProto::Assigned* assigned = heap_allocation->add_assigned();
        assigned->set_logical_buffer_id(ids[e.live_range]);
        assigned->set_offset(life.offset);
        assigned->set_size(life.bytes);
        if (life.to >= steps.size()) heap_allocation->set_maybe_live_out(true);
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
        blocks[a] = {AddBuffer(arrays[a].value, bytes), heap.Allocate(bytes)};
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

  int64_t AddBuffer(InstructionId value, int64_t bytes) {
    xla::LogicalBufferProto* buffer = out_.add_logical_buffers();
    buffer->set_id(static_cast<int64_t>(out_.logical_buffers_size()));
    buffer->set_size(bytes);
    buffer->mutable_defined_at()->set_instruction_name(Ascii(module_.instruction(value).name()));
    buffer->mutable_defined_at()->set_instruction_id(IdOf(value));
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
  xla::BufferAssignmentProto& out_;
};

}  // namespace

std::string HloProtoBytes(const ReportInput& input, const KernelPlan& plan, int64_t program_id) {
  xla::HloProto proto;
  WriteModule(input.module, plan, program_id, proto.mutable_hlo_module());
  Buffers(input, plan, proto.mutable_buffer_assignment()).Write();
  return proto.SerializeAsString();
}

}  // namespace hlokit::tpu
