// SPDX-License-Identifier: Apache-2.0
#include "parser/proto/module_writer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/graph/traversal.h"
#include "parser/proto/annotation_proto.h"
#include "parser/proto/header_proto.h"
#include "parser/proto/serialize.h"

namespace hlokit {
namespace {

constexpr int kComputationBits = 32;  // of an instruction's number, above its place

// The order of the computations in a message: callees first.
std::vector<ComputationId> ComputationOrder(const Module& module, const KeptFields* kept) {
  const auto is_callees_first = [&module](const std::vector<ComputationId>& order) {
    std::vector<uint8_t> seen(module.computation_id_bound(), 0);
    for (ComputationId id : order) {
      if (seen[id.value] != 0) return false;
      bool good = true;
      for (Instruction i : module.computation(id).instructions()) {
        i.ForEachCallee([&](Computation callee) { good = good && seen[callee.id().value] != 0; });
      }
      if (!good) return false;
      seen[id.value] = 1;
    }
    return order.size() == module.computation_count();
  };
  const auto is_live = [&module](ComputationId id) {
    return id.value < module.computation_id_bound() && !module.record(id).erased;
  };
  // The order of the file, whatever it was, for the same computations.
  if (kept != nullptr && kept->computation_order.size() == module.computation_count() &&
      std::all_of(kept->computation_order.begin(), kept->computation_order.end(), is_live)) {
    return kept->computation_order;
  }
  std::vector<ComputationId> order;
  for (Computation c : module.computations()) order.push_back(c.id());
  return is_callees_first(order) ? order : ComputationPostOrder(module);
}

// The order of the instructions: operands and control predecessors first.
std::vector<InstructionId> InstructionOrder(Computation computation, const KeptFields* kept) {
  const Module& module = computation.module();
  std::vector<InstructionId> order;
  if (kept != nullptr) {
    const auto found = kept->instruction_order.find(computation.id().value);
    if (found != kept->instruction_order.end() &&
        static_cast<int64_t>(found->second.size()) == computation.instruction_count() &&
        std::all_of(found->second.begin(), found->second.end(),
                    [&](InstructionId id) { return module.record(id).parent == computation.id(); })) {
      return found->second;
    }
  }
  std::vector<uint32_t> place;
  InstructionId last;
  bool in_order = true;
  uint32_t low = UINT32_MAX, high = 0;
  for (Instruction i : computation.instructions()) {
    order.push_back(i.id());
    low = std::min(low, i.id().value);
    high = std::max(high, i.id().value);
  }
  place.assign(high - low + 1, UINT32_MAX);
  for (uint32_t k = 0; k < order.size(); ++k) {
    const Instruction i = module.instruction(order[k]);
    const auto is_before = [&](InstructionId id) {
      return id.value >= low && id.value <= high && place[id.value - low] != UINT32_MAX;
    };
    for (Instruction operand : i.operands()) in_order = in_order && is_before(operand.id());
    for (int64_t id : i.list_attr(Attr::kControlPredecessors)) {
      in_order = in_order && is_before(InstructionId(static_cast<uint32_t>(id)));
    }
    place[order[k].value - low] = k;
  }
  return in_order ? order : PostOrder(computation);
}

absl::Status WriteProgramShape(Computation computation, ShapeWriter* shapes, xla::ProgramShapeProto* out) {
  for (int64_t k = 0; k < computation.parameter_count(); ++k) {
    absl::Status status = shapes->Write(computation.parameter(k).shape(), out->add_parameters());
    if (!status.ok()) return status;
    out->add_parameter_names(Utf8(computation.parameter(k).name()));
  }
  return shapes->Write(computation.root().shape(), out->mutable_result());
}

class ModuleWriter {
 public:
  ModuleWriter(const Module& module, const ProtoWriteOptions& options)
      : module_(module),
        kept_(options.kept),
        ids_(ProtoIdsOf(module, options.kept)),
        roles_(RolesOf(module)),
        instructions_(module, ids_, options.kept == nullptr ? absl::Span<const int32_t>() : options.kept->frame_ids,
                      options.max_literal_elements) {}

  // Each part without those it contains, as it is written without a file to go back to.
  absl::Status WriteHeader(xla::HloModuleProto* out);
  absl::Status WriteComputation(Computation c, xla::HloComputationProto* out);
  absl::Status WriteInstruction(Instruction i, xla::HloInstructionProto* out) { return instructions_.Write(i, out); }

  absl::Status Write(xla::HloModuleProto* out);

 private:
  void WriteSchedule(xla::HloScheduleProto* out);

  const Module& module_;
  const KeptFields* kept_;
  ProtoIds ids_;
  ComputationRoles roles_;
  InstructionWriter instructions_;
};

void ModuleWriter::WriteSchedule(xla::HloScheduleProto* out) {
  for (Computation c : module_.computations()) {
    if (roles_.fusion[c.id().value] != 0) continue;
    xla::HloScheduleProto::InstructionSequence& sequence = (*out->mutable_sequences())[ids_.of(c.id())];
    for (Instruction i : c.instructions()) sequence.add_instruction_ids(ids_.of(i.id()));
  }
}

absl::Status ModuleWriter::WriteHeader(xla::HloModuleProto* out) {
  out->set_name(Utf8(module_.name()));
  out->set_entry_computation_name(Utf8(module_.entry().name()));
  out->set_entry_computation_id(ids_.of(module_.entry().id()));
  if (module_.header().is_scheduled) WriteSchedule(out->mutable_schedule());
  return WriteHeaderProto(module_, &instructions_.shapes(), out);
}

absl::Status ModuleWriter::WriteComputation(Computation c, xla::HloComputationProto* out) {
  out->set_name(Utf8(c.name()));
  out->set_id(ids_.of(c.id()));
  out->set_root_id(ids_.of(c.root().id()));
  out->set_is_fusion_computation(roles_.fusion[c.id().value] != 0);
  if (c.execution_thread() != "main") out->set_execution_thread(Utf8(c.execution_thread()));
  return WriteProgramShape(c, &instructions_.shapes(), out->mutable_program_shape());
}

absl::Status ModuleWriter::Write(xla::HloModuleProto* out) {
  if (absl::Status status = WriteHeader(out); !status.ok()) return status;
  if (kept_ != nullptr) kept_->module.Restore(out);
  for (ComputationId id : ComputationOrder(module_, kept_)) {
    const Computation c = module_.computation(id);
    xla::HloComputationProto* computation = out->add_computations();
    if (absl::Status status = WriteComputation(c, computation); !status.ok()) return status;
    if (kept_ != nullptr) {
      const auto found = kept_->computations.find(id.value);
      if (found != kept_->computations.end()) found->second.Restore(computation);
    }
    for (InstructionId at : InstructionOrder(c, kept_)) {
      xla::HloInstructionProto* instruction = computation->add_instructions();
      if (absl::Status status = WriteInstruction(module_.instruction(at), instruction); !status.ok()) {
        return absl::Status(status.code(), StrCat("instruction `", module_.instruction(at).name(),
                                                  "`: ", std::string(status.message())));
      }
      if (kept_ == nullptr) continue;
      const auto found = kept_->instructions.find(at.value);
      if (found != kept_->instructions.end()) found->second.Restore(instruction);
    }
  }
  return absl::OkStatus();
}

}  // namespace

ProtoIds ProtoIdsOf(const Module& module, const KeptFields* kept) {
  ProtoIds ids;
  ids.computations.assign(module.computation_id_bound(), 0);
  ids.instructions.assign(module.instruction_id_bound(), 0);
  if (kept == nullptr) {
    int64_t next = 0;
    for (ComputationId c : ComputationOrder(module, nullptr)) {
      int64_t place = 0;
      for (InstructionId i : InstructionOrder(module.computation(c), nullptr)) {
        ids.instructions[i.value] = next << kComputationBits | place++;
      }
      ids.computations[c.value] = next++;
    }
    return ids;
  }
  // Numbers of the file, and further ones after the highest.
  int64_t last_computation = -1, last_place = -1;
  for (int64_t id : kept->computation_ids) last_computation = std::max(last_computation, id);
  for (int64_t id : kept->instruction_ids) {
    if (id != KeptFields::kNoId) last_place = std::max(last_place, id & int64_t{UINT32_MAX});
  }
  for (ComputationId c : ComputationOrder(module, kept)) {
    const int64_t known = kept->IdOf(c);
    const int64_t id = known != KeptFields::kNoId ? known : ++last_computation;
    ids.computations[c.value] = id;
    for (InstructionId i : InstructionOrder(module.computation(c), kept)) {
      const int64_t read = kept->IdOf(i);
      ids.instructions[i.value] = read != KeptFields::kNoId
                                      ? read
                                      : static_cast<int64_t>(static_cast<uint64_t>(id) << kComputationBits) |
                                            (++last_place & int64_t{UINT32_MAX});
    }
  }
  return ids;
}

absl::Status WriteModuleProto(const Module& module, const ProtoWriteOptions& options, xla::HloModuleProto* out) {
  return ModuleWriter(module, options).Write(out);
}

absl::StatusOr<KeptFields> FindKeptFields(const Module& module, const ModuleReadMap& map, xla::HloModuleProto* proto) {
  KeptFields kept;
  kept.frame_ids = map.frame_ids;
  kept.computation_order = map.computations;
  kept.computation_ids.assign(module.computation_id_bound(), KeptFields::kNoId);
  kept.instruction_ids.assign(module.instruction_id_bound(), KeptFields::kNoId);
  for (size_t c = 0; c < map.computations.size(); ++c) {
    const xla::HloComputationProto& computation = proto->computations(static_cast<int>(c));
    kept.computation_ids[map.computations[c].value] = computation.id();
    for (size_t i = 0; i < map.instructions[c].size(); ++i) {
      kept.instruction_ids[map.instructions[c][i].value] = computation.instructions(static_cast<int>(i)).id();
    }
    std::vector<InstructionId> order;
    for (Instruction i : module.computation(map.computations[c]).instructions()) order.push_back(i.id());
    if (order != map.instructions[c] || InstructionOrder(module.computation(map.computations[c]), nullptr) != order) {
      kept.instruction_order[map.computations[c].value] = map.instructions[c];
    }
  }
  ProtoWriteOptions options;
  options.kept = &kept;
  ModuleWriter writer(module, options);
  // Lists of parts are taken out while what contains them is compared.
  google::protobuf::RepeatedPtrField<xla::HloComputationProto> computations;
  computations.Swap(proto->mutable_computations());
  xla::HloModuleProto header;
  absl::Status status = writer.WriteHeader(&header);
  kept.module = KeptMessage::Difference(SerializedMessage(*proto), SerializedMessage(header));
  computations.Swap(proto->mutable_computations());
  if (!status.ok()) return status;
  for (size_t c = 0; c < map.computations.size(); ++c) {
    xla::HloComputationProto* computation = proto->mutable_computations(static_cast<int>(c));
    google::protobuf::RepeatedPtrField<xla::HloInstructionProto> instructions;
    instructions.Swap(computation->mutable_instructions());
    xla::HloComputationProto written;
    status = writer.WriteComputation(module.computation(map.computations[c]), &written);
    KeptMessage difference = KeptMessage::Difference(SerializedMessage(*computation), SerializedMessage(written));
    if (!difference.empty()) kept.computations.emplace(map.computations[c].value, std::move(difference));
    instructions.Swap(computation->mutable_instructions());
    if (!status.ok()) return status;
    for (size_t i = 0; i < map.instructions[c].size(); ++i) {
      const InstructionId id = map.instructions[c][i];
      xla::HloInstructionProto instruction;
      if (status = writer.WriteInstruction(module.instruction(id), &instruction); !status.ok()) return status;
      KeptMessage kept_instruction = KeptMessage::Difference(
          SerializedMessage(computation->instructions(static_cast<int>(i))), SerializedMessage(instruction));
      if (!kept_instruction.empty()) kept.instructions.emplace(id.value, std::move(kept_instruction));
    }
  }
  return kept;
}

}  // namespace hlokit
