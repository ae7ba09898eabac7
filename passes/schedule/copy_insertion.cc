// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/copy_insertion.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/builder/builder.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/dataflow_analysis.h"
#include "passes/core/pass_row.h"
#include "passes/schedule/argument_copies.h"

namespace hlokit {
namespace {

class CopyInserter {
 public:
  CopyInserter(Module* module, const CallGraph& calls, RemarkCollector* remarks)
      : module_(*module), calls_(calls), remarks_(remarks) {}

  absl::Status Run(Computation c);
  int64_t copies() const { return copies_; }

 private:
  enum class Role { kEntry, kLoopBody, kBranch, kOther };

  Role RoleOf(Computation c) const;
  // Returns a copy of `i`, an array, or of the elements of a flat tuple for which `needed` is set.
  // `user`: overwrites it; invalid: it is a result.
  absl::StatusOr<InstructionId> Copied(InstructionId i, absl::Span<const uint8_t> needed, Instruction user);
  absl::StatusOr<InstructionId> CopyOf(Builder* builder, InstructionId array, Instruction user);
  std::vector<uint8_t> NeededAtRoot(Computation c, const DataflowAnalysis& flow, Role role) const;

  Module& module_;
  const CallGraph& calls_;
  RemarkCollector* const remarks_;
  int64_t copies_ = 0;
};

CopyInserter::Role CopyInserter::RoleOf(Computation c) const {
  if (c.is_entry()) return Role::kEntry;
  Role role = Role::kOther;
  for (const CallSite& site : calls_.caller_callsites(c)) {
    const Instruction caller = module_.instruction(site.caller);
    if (caller.opcode() == Opcode::kWhile && caller.computation_attr(Attr::kBody).id() == c.id()) {
      return Role::kLoopBody;
    }
    if (OpcodeSet{Opcode::kConditional, Opcode::kCall}.Contains(caller.opcode())) role = Role::kBranch;
  }
  return role;
}

absl::StatusOr<InstructionId> CopyInserter::CopyOf(Builder* builder, InstructionId array, Instruction user) {
  const MetadataScope scope(builder, module_.record(array).metadata);
  const Builder::Result copy = builder->Unary(Opcode::kCopy, array);
  if (copy.ok()) {
    ++copies_;
    // In place: the layout is that of the array.
    module_.SetShape(*copy, module_.instruction(array).shape());
    AddCopyRemark(*copy, module_.instruction(array), user, remarks_);
  }
  return copy;
}

absl::StatusOr<InstructionId> CopyInserter::Copied(InstructionId id, absl::Span<const uint8_t> needed,
                                                   Instruction user) {
  Builder builder(&module_, module_.record(id).parent);
  const Instruction i = module_.instruction(id);
  if (!i.shape().IsTuple()) return CopyOf(&builder, id, user);
  std::vector<InstructionId> parts;
  const int64_t size = i.shape().tuple_size();
  for (int64_t k = 0; k < size; ++k) {
    InstructionId part;
    if (module_.record(id).opcode == Opcode::kTuple) {
      part = module_.instruction(id).operand(k).id();
    } else {
      const MetadataScope scope(&builder, module_.record(id).metadata);
      const Builder::Result taken = builder.GetTupleElement(id, k);
      if (!taken.ok()) return taken.status();
      part = *taken;
    }
    if (needed[static_cast<size_t>(k)]) {
      const absl::StatusOr<InstructionId> copy = CopyOf(&builder, part, user);
      if (!copy.ok()) return copy.status();
      part = *copy;
    }
    parts.push_back(part);
  }
  const MetadataScope scope(&builder, module_.record(id).metadata);
  return builder.Tuple(parts);
}

std::vector<uint8_t> CopyInserter::NeededAtRoot(Computation c, const DataflowAnalysis& flow, Role role) const {
  const absl::Span<const uint32_t> held = flow.ValuesOf(c.root());
  std::vector<uint8_t> needed(held.size(), 0);
  absl::flat_hash_set<uint32_t> seen;
  for (size_t k = 0; k < held.size(); ++k) {
    const DataflowValue& value = flow.values()[held[k]];
    if (!value.shape.IsArray()) continue;
    const Instruction producer = module_.instruction(value.defining_instruction);
    bool copy = !seen.insert(held[k]).second || producer.opcode() == Opcode::kConstant;
    if (producer.opcode() == Opcode::kParameter) {
      if (role == Role::kLoopBody) {
        copy |= value.leaf != static_cast<int64_t>(k);
      } else {
        bool given = false;
        if (role == Role::kEntry) {
          // The header aliases this parameter with this result; both are flat.
          for (const InputOutputAlias& alias : module_.header().input_output_alias) {
            const absl::Span<const int64_t> from = module_.context().list(alias.parameter_index);
            const absl::Span<const int64_t> to = module_.context().list(alias.output_index);
            given |= alias.parameter == producer.parameter_number() && (from.empty() ? 0 : from[0]) == value.leaf &&
                     (to.empty() ? 0 : to[0]) == static_cast<int64_t>(k) && from.size() <= 1 && to.size() <= 1;
          }
        }
        copy |= !given;
      }
    }
    needed[k] = copy;
  }
  return needed;
}

absl::Status CopyInserter::Run(Computation c) {
  const Role role = RoleOf(c);
  const std::vector<InstructionId> order = PostOrder(c);
  const absl::StatusOr<DataflowAnalysis> flow = DataflowAnalysis::Create(module_, order);
  if (!flow.ok()) return flow.status();
  // Number of instructions that read each value; the root counts as one.
  std::vector<int32_t> readers(flow->values().size(), 0);
  for (InstructionId id : order) {
    const Instruction i = module_.instruction(id);
    if (HasTrait(i.opcode(), kForwards) && !i.is_root()) continue;
    std::vector<uint32_t> read;
    if (i.is_root()) {
      read.assign(flow->ValuesOf(i).begin(), flow->ValuesOf(i).end());
    }
    if (!HasTrait(i.opcode(), kForwards)) {
      for (Instruction operand : i.operands()) {
        const absl::Span<const uint32_t> held = flow->ValuesOf(operand);
        read.insert(read.end(), held.begin(), held.end());
      }
    }
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    for (uint32_t v : read) ++readers[v];
  }
  // An operand that its user overwrites.
  struct Place {
    InstructionId user;
    int64_t operand;
    std::vector<uint8_t> needed;
  };
  std::vector<Place> places;
  for (InstructionId id : order) {
    const Instruction i = module_.instruction(id);
    int64_t overwritten = 0;
    if (OpcodeSet{Opcode::kWhile, Opcode::kDynamicUpdateSlice}.Contains(i.opcode())) overwritten = 1;
    if (i.opcode() == Opcode::kScatter) overwritten = (i.operand_count() - 1) / 2;
    for (int64_t k = 0; k < overwritten; ++k) {
      if (!IsFlat(i.operand(k).shape())) continue;
      const absl::Span<const uint32_t> held = flow->ValuesOf(i.operand(k));
      std::vector<uint8_t> needed(held.size(), 0);
      absl::flat_hash_map<uint32_t, int> times;
      for (uint32_t value : held) ++times[value];
      bool any = false;
      for (size_t n = 0; n < held.size(); ++n) {
        const DataflowValue& value = flow->values()[held[n]];
        if (!value.shape.IsArray()) continue;
        const Opcode producer = module_.record(value.defining_instruction).opcode;
        // The parameter of a loop body belongs to the loop.
        const bool foreign =
            producer == Opcode::kConstant || (producer == Opcode::kParameter && role != Role::kLoopBody);
        needed[n] = foreign || readers[held[n]] > 1 || times[held[n]] > 1;
        any |= needed[n] != 0;
      }
      if (any) places.push_back({id, k, std::move(needed)});
    }
  }
  const std::vector<uint8_t> at_root = NeededAtRoot(c, *flow, role);
  for (const Place& place : places) {
    const InstructionId operand = module_.instruction(place.user).operand(place.operand).id();
    const absl::StatusOr<InstructionId> copy = Copied(operand, place.needed, module_.instruction(place.user));
    if (!copy.ok()) return copy.status();
    module_.ReplaceOperand(place.user, place.operand, *copy);
  }
  if (role == Role::kOther || !IsFlat(c.root().shape())) return absl::OkStatus();
  if (std::find(at_root.begin(), at_root.end(), 1) == at_root.end()) return absl::OkStatus();
  const absl::StatusOr<InstructionId> copy = Copied(c.root().id(), at_root, Instruction());
  if (!copy.ok()) return copy.status();
  module_.SetRoot(c.id(), *copy);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> InsertCopies(Module& module, RemarkCollector* remarks) {
  if (module.header().is_scheduled || !module.entry().valid()) return 0;
  const CallGraph calls(module);
  CopyInserter inserter(&module, calls, RemarksFor(remarks, RemarkCategory::kSchedule));
  for (ComputationId id : calls.PostOrder()) {
    const Computation c = module.computation(id);
    if (!calls.IsSequential(c) || !calls.IsLive(c)) continue;
    // The wrapped instruction of an asynchronous operation stays one instruction.
    bool is_async = false;
    for (const CallSite& site : calls.caller_callsites(c)) {
      is_async |= module.record(site.caller).opcode == Opcode::kAsyncStart;
    }
    if (is_async) continue;
    if (absl::Status status = inserter.Run(c); !status.ok()) return status;
  }
  return inserter.copies();
}

namespace {

class CopyInsertion : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> copies = options().Bool("arguments-only")
                                               ? InsertArgumentCopies(module, context().remarks)
                                               : InsertCopies(module, context().remarks);
    if (!copies.ok()) return copies.status();
    if (*copies > 0) Count("copies added", *copies);
    return *copies > 0;
  }
};

}  // namespace

HLOKIT_PASS(CopyInsertion) {
  return {
      .name = "copy-insertion",
      .category = "schedule",
      .summary = "copy values that would otherwise be overwritten before their last use",
      .doc =
          "Adds the copies needed so that each array of a loop state keeps its buffer, updates in place overwrite "
          "no value with other uses, and results do not share memory with parameters or each other.",
      .example = R"(HloModule swap

cond {
  p = (f32[8]{0}, f32[8]{0}) parameter(0)
  ROOT c = pred[] constant(false)
}

body {
  p = (f32[8]{0}, f32[8]{0}) parameter(0)
  a = f32[8]{0} get-tuple-element(p), index=0
  b = f32[8]{0} get-tuple-element(p), index=1
  ROOT t = (f32[8]{0}, f32[8]{0}) tuple(b, a)
}

ENTRY main {
  x = f32[8]{0} parameter(0)
  t = (f32[8]{0}, f32[8]{0}) tuple(x, x)
  ROOT w = (f32[8]{0}, f32[8]{0}) while(t), condition=cond, body=body
}
)",
      .options = {{.name = "arguments-only",
                   .type = OptionInfo::Type::kBool,
                   .default_text = "false",
                   .doc = "only copies of arguments and constants of the program that are results, or are updated in "
                          "place, and are not donated"}},
      .preconditions = kNoSchedule,
      .create = MakePass<CopyInsertion>};
}

}  // namespace hlokit
