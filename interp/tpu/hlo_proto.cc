#include "interp/tpu/hlo_proto.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "interp/runtime/hlo.pb.h"
#include "interp/tpu/ascii.h"
#include "interp/tpu/heap.h"
#include "interp/tpu/tiling.h"
#include "ir/traversal.h"

namespace hlokit::tpu {

namespace {

// XLA's PrimitiveType numbers (xla_data.proto).
int PrimitiveType(ElementType type) {
  switch (type) {
    case ElementType::kPred:
      return 1;
    case ElementType::kS8:
      return 2;
    case ElementType::kS16:
      return 3;
    case ElementType::kS32:
      return 4;
    case ElementType::kS64:
      return 5;
    case ElementType::kU8:
      return 6;
    case ElementType::kU16:
      return 7;
    case ElementType::kU32:
      return 8;
    case ElementType::kU64:
      return 9;
    case ElementType::kF16:
      return 10;
    case ElementType::kF32:
      return 11;
    case ElementType::kF64:
      return 12;
    case ElementType::kTuple:
      return 13;
    case ElementType::kOpaque:
      return 14;
    case ElementType::kC64:
      return 15;
    case ElementType::kBF16:
      return 16;
    case ElementType::kToken:
      return 17;
    case ElementType::kC128:
      return 18;
    case ElementType::kF8E5M2:
      return 19;
    case ElementType::kF8E4M3FN:
      return 20;
    case ElementType::kS4:
      return 21;
    case ElementType::kU4:
      return 22;
    case ElementType::kF8E4M3B11FNUZ:
      return 23;
    case ElementType::kF8E5M2FNUZ:
      return 24;
    case ElementType::kF8E4M3FNUZ:
      return 25;
    case ElementType::kS2:
      return 26;
    case ElementType::kU2:
      return 27;
    case ElementType::kF8E4M3:
      return 28;
    case ElementType::kF8E3M4:
      return 29;
    case ElementType::kS1:
      return 30;
    case ElementType::kU1:
      return 31;
    case ElementType::kF4E2M1FN:
      return 32;
    case ElementType::kF8E8M0FNU:
      return 33;
    case ElementType::kBuffer:
      return 34;
  }
  return 0;
}

void WriteArray(Shape shape, xla::ShapeProto* out) {
  out->set_element_type(PrimitiveType(shape.element_type()));
  if (!shape.IsArray()) return;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    out->add_dimensions(shape.dim(d));
    out->add_is_dynamic_dimension(shape.is_dynamic(d));
  }
  if (shape.layout() == nullptr) {
    for (int64_t d = shape.rank(); d-- > 0;) out->mutable_layout()->add_minor_to_major(d);
    return;
  }
  for (int64_t d : shape.layout()->minor_to_major) out->mutable_layout()->add_minor_to_major(d);
  out->mutable_layout()->set_memory_space(shape.layout()->memory_space());
}

// Tuples may be nested as deep as a file says.
void WriteShape(Shape shape, xla::ShapeProto* out) {
  std::vector<std::pair<Shape, xla::ShapeProto*>> open = {{shape, out}};
  while (!open.empty()) {
    const auto [s, to] = open.back();
    open.pop_back();
    WriteArray(s, to);
    // An element's place stays where it is while more are added.
    for (int64_t k = 0; k < s.tuple_size(); ++k) open.push_back({s.element(k), to->add_tuple_shapes()});
  }
}

// Messages of profiles keep ids apart from 0, which is no id.
int64_t IdOf(InstructionId id) { return static_cast<int64_t>(id.value) + 1; }
int64_t IdOf(ComputationId id) { return static_cast<int64_t>(id.value) + 1; }

void WriteInstruction(Instruction i, xla::HloInstructionProto* out) {
  out->set_name(Ascii(i.name()));
  out->set_opcode(std::string(i.opcode_text()));
  WriteShape(i.shape(), out->mutable_shape());
  out->set_id(IdOf(i.id()));
  for (Instruction operand : i.operands()) out->add_operand_ids(IdOf(operand.id()));
  for (Computation callee : i.called_computations()) out->add_called_computation_ids(IdOf(callee.id()));
  const Context& context = i.module().context();
  const Metadata metadata = i.metadata();
  if (metadata.op_type) out->mutable_metadata()->set_op_type(Ascii(context.str(metadata.op_type)));
  if (metadata.op_name) out->mutable_metadata()->set_op_name(Ascii(context.str(metadata.op_name)));
  if (metadata.source_file) {
    out->mutable_metadata()->set_source_file(Ascii(context.str(metadata.source_file)));
    out->mutable_metadata()->set_source_line(metadata.source_line);
  }
  if (i.opcode() == Opcode::kParameter) out->set_parameter_number(i.parameter_number());
  if (i.opcode() == Opcode::kGetTupleElement) out->set_tuple_index(i.int_attr(Attr::kIndex));
  if (i.opcode() == Opcode::kFusion) out->set_fusion_kind("kLoop");
  if (i.opcode() == Opcode::kCustomCall) out->set_custom_call_target(Ascii(i.string_attr(Attr::kCustomCallTarget)));
  for (int64_t d : i.list_attr(Attr::kDimensions)) out->add_dimensions(d);
}

void WriteProgramShape(Computation computation, xla::ProgramShapeProto* out) {
  for (int64_t k = 0; k < computation.parameter_count(); ++k) {
    WriteShape(computation.parameter(k).shape(), out->add_parameters());
    out->add_parameter_names(Ascii(computation.parameter(k).name()));
  }
  WriteShape(computation.root().shape(), out->mutable_result());
}

// Callees before callers.
std::vector<Computation> CalleesFirst(const Module& module) {
  std::vector<Computation> order;
  std::vector<uint8_t> state(module.computation_id_bound(), 0);  // 1: open, 2: done
  for (Computation start : module.computations()) {
    std::vector<Computation> open = {start};
    while (!open.empty()) {
      const Computation c = open.back();
      uint8_t& s = state[c.id().value];
      if (s != 0) {
        open.pop_back();
        if (s == 1) order.push_back(c);
        s = 2;
        continue;
      }
      s = 1;
      for (Instruction i : c.instructions()) {
        for (Computation callee : i.called_computations()) {
          if (state[callee.id().value] == 0) open.push_back(callee);
        }
      }
    }
  }
  return order;
}

void WriteModule(const Module& module, const KernelPlan& plan, int64_t program_id, xla::HloModuleProto* out) {
  out->set_name(Ascii(module.name()));
  out->set_id(program_id);
  std::vector<uint8_t> fused(module.computation_id_bound(), 0);
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.opcode() != Opcode::kFusion) continue;
      for (Computation callee : i.called_computations()) fused[callee.id().value] = 1;
    }
  }
  for (Computation c : CalleesFirst(module)) {
    xla::HloComputationProto* computation = out->add_computations();
    computation->set_name(Ascii(c.name()));
    computation->set_id(IdOf(c.id()));
    computation->set_root_id(IdOf(c.root().id()));
    computation->set_is_fusion_computation(fused[c.id().value] != 0);
    WriteProgramShape(c, computation->mutable_program_shape());
    // Passes leave instructions in any order; readers want operands first.
    for (InstructionId id : PostOrder(c)) WriteInstruction(module.instruction(id), computation->add_instructions());
  }
  out->set_entry_computation_name(Ascii(module.entry().name()));
  out->set_entry_computation_id(IdOf(module.entry().id()));
  WriteProgramShape(module.entry(), out->mutable_host_program_shape());
  for (const ComputationPlan& computation : plan.computations()) {
    xla::HloScheduleProto::InstructionSequence& sequence =
        (*out->mutable_schedule()->mutable_sequences())[IdOf(computation.computation)];
    for (const Step& step : computation.steps) sequence.add_instruction_ids(IdOf(step.name));
  }
}

class Buffers {
 public:
  Buffers(const Module& module, const KernelPlan& plan, const MemoryPlan& memory, xla::BufferAssignmentProto* out)
      : module_(module), plan_(plan), memory_(memory), out_(*out) {}

  void Write() {
    const Computation entry = module_.entry();
    for (const BufferLife& parameter : memory_.standing) {
      const int64_t buffer = AddBuffer(parameter.value, parameter.bytes);
      xla::BufferAllocationProto* allocation = AddAllocation(buffer, parameter.bytes);
      const Instruction i = module_.instruction(parameter.value);
      if (i.opcode() != Opcode::kParameter) continue;
      allocation->set_is_entry_computation_parameter(true);
      allocation->set_parameter_number(i.parameter_number());
    }
    const int64_t at = plan_.PlanOf(entry.id());
    if (at < 0) return;
    const std::vector<Step>& steps = plan_.computations()[at].steps;
    const int64_t heap_index = static_cast<int64_t>(out_.buffer_allocations_size());
    xla::BufferAllocationProto* heap_allocation = out_.add_buffer_allocations();
    heap_allocation->set_index(heap_index);
    xla::HeapSimulatorTrace* trace = out_.add_heap_simulator_traces();
    trace->set_whole_module_simulation(true);
    trace->set_buffer_allocation_index(heap_index);
    std::vector<int64_t> ids(memory_.lives.size(), 0);
    const int64_t size = WalkHeap(memory_, steps.size(), [&](const HeapEvent& e) {
      const BufferLife& life = memory_.lives[e.life];
      if (e.allocates) {
        ids[e.life] = AddBuffer(life.value, life.bytes);
        xla::BufferAllocationProto::Assigned* assigned = heap_allocation->add_assigned();
        assigned->set_logical_buffer_id(ids[e.life]);
        assigned->set_offset(e.offset);
        assigned->set_size(life.bytes);
        if (life.to >= steps.size()) heap_allocation->set_maybe_live_out(true);
      }
      xla::HeapSimulatorTrace::Event* event = trace->add_events();
      event->set_kind(e.allocates ? xla::HeapSimulatorTrace::Event::ALLOC : xla::HeapSimulatorTrace::Event::FREE);
      event->set_buffer_id(ids[e.life]);
      event->set_computation_name(Ascii(entry.name()));
      event->set_instruction_name(Ascii(module_.instruction(steps[e.step].name).name()));
    });
    heap_allocation->set_size(size);
  }

 private:
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

  const Module& module_;
  const KernelPlan& plan_;
  const MemoryPlan& memory_;
  xla::BufferAssignmentProto& out_;
};

}  // namespace

std::string HloProtoBytes(const Module& module, const KernelPlan& plan, const MemoryPlan& memory, int64_t program_id) {
  xla::HloProto proto;
  WriteModule(module, plan, program_id, proto.mutable_hlo_module());
  Buffers(module, plan, memory, proto.mutable_buffer_assignment()).Write();
  return proto.SerializeAsString();
}

}  // namespace hlokit::tpu
