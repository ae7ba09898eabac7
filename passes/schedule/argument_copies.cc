// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/argument_copies.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "ir/builder/builder.h"
#include "passes/analysis/cost.h"
#include "passes/schedule/loop_state.h"
#include "passes/schedule/vector_memory.h"
#include "passes/target/aliases.h"
#include "passes/target/tiling.h"

namespace hlokit {
namespace {

class ArgumentCopier {
 public:
  ArgumentCopier(Module* module, RemarkCollector* remarks)
      : module_(*module), entry_(module->entry()), remarks_(remarks) {
    for (const InputOutputAlias& alias : module_.header().input_output_alias) {
      donated_.insert({alias.parameter, FirstOf(module_.context().list(alias.parameter_index))});
    }
    for (const BufferDonor& donor : module_.header().buffer_donor) {
      donated_.insert({donor.parameter, FirstOf(module_.context().list(donor.parameter_index))});
    }
  }

  absl::StatusOr<int64_t> Run() {
    std::vector<InstructionId> order;
    for (Instruction i : entry_.instructions()) order.push_back(i.id());
    for (InstructionId id : order) {
      const Instruction i = module_.instruction(id);
      for (int64_t k : InPlaceOperands(i)) {
        if (absl::Status status = CopyOperand(i, k); !status.ok()) return status;
      }
      if (i.opcode() == Opcode::kWhile && i.operand(0).opcode() == Opcode::kTuple) {
        if (absl::Status status = CopyState(i); !status.ok()) return status;
      }
    }
    if (absl::Status status = CopyResults(); !status.ok()) return status;
    return copies_;
  }

 private:
  static int64_t FirstOf(absl::Span<const int64_t> index) { return index.empty() ? 0 : index[0]; }

  // Returns true for an array, but no scalar, that only the caller, or nobody, may write to.
  bool IsForeign(Instruction value) const {
    if (!value.shape().IsArray() || value.shape().IsScalar()) return false;
    if (tpu::MemorySpaceOf(value.shape()) != tpu::kDefaultMemorySpace) return false;
    const Instruction source = tpu::ValueOf(value);
    if (source.opcode() == Opcode::kConstant) return true;
    Instruction parameter = source;
    int64_t leaf = 0;
    if (source.opcode() == Opcode::kGetTupleElement) {
      parameter = source.operand(0);
      leaf = source.int_attr(Attr::kIndex);
    }
    return parameter.opcode() == Opcode::kParameter && !donated_.contains({parameter.parameter_number(), leaf});
  }

  // `user`: overwrites the array; invalid: the array is a result.
  absl::StatusOr<InstructionId> CopyOf(Instruction array, Instruction user) {
    Builder builder(&module_, entry_.id());
    const MetadataScope scope(&builder, array.metadata_id());
    const Builder::Result copy = builder.Unary(Opcode::kCopy, array.id());
    if (!copy.ok()) return copy.status();
    module_.SetShape(*copy, array.shape());
    ++copies_;
    AddCopyRemark(*copy, array, user, remarks_);
    return *copy;
  }

  absl::Status CopyOperand(Instruction user, int64_t k) {
    if (k >= user.operand_count() || !IsForeign(user.operand(k))) return absl::OkStatus();
    const absl::StatusOr<InstructionId> copy = CopyOf(user.operand(k), user);
    if (!copy.ok()) return copy.status();
    module_.ReplaceOperand(user.id(), k, *copy);
    return absl::OkStatus();
  }

  // Copies the initial values of elements that a loop changes.
  absl::Status CopyState(Instruction loop) {
    const Instruction init = loop.operand(0);
    std::vector<InstructionId> elements;
    for (Instruction element : init.operands()) elements.push_back(element.id());
    bool changed = false;
    for (const LoopVariantElement& element : LoopVariantElements(loop.computation_attr(Attr::kBody))) {
      if (element.index >= init.operand_count() || !IsForeign(init.operand(element.index))) continue;
      const absl::StatusOr<InstructionId> copy = CopyOf(init.operand(element.index), loop);
      if (!copy.ok()) return copy.status();
      elements[static_cast<size_t>(element.index)] = *copy;
      changed = true;
    }
    return changed ? ReplaceTuple(init, elements, loop) : absl::OkStatus();
  }

  absl::Status CopyResults() {
    const Instruction root = entry_.root();
    if (root.shape().IsArray()) {
      if (!IsForeign(root)) return absl::OkStatus();
      const absl::StatusOr<InstructionId> copy = CopyOf(root, Instruction());
      if (!copy.ok()) return copy.status();
      module_.SetRoot(entry_.id(), *copy);
      return absl::OkStatus();
    }
    if (root.opcode() != Opcode::kTuple) return absl::OkStatus();
    std::vector<InstructionId> elements;
    bool changed = false;
    for (Instruction element : root.operands()) {
      elements.push_back(element.id());
      if (!IsForeign(element)) continue;
      const absl::StatusOr<InstructionId> copy = CopyOf(element, Instruction());
      if (!copy.ok()) return copy.status();
      elements.back() = *copy;
      changed = true;
    }
    return changed ? ReplaceTuple(root, elements, Instruction()) : absl::OkStatus();
  }

  // Makes a tuple like `old` of other elements the operand of `user`, or the root if there is none.
  absl::Status ReplaceTuple(Instruction old, const std::vector<InstructionId>& elements, Instruction user) {
    const Shape shape = old.shape();
    Builder builder(&module_, entry_.id());
    const MetadataScope scope(&builder, old.metadata_id());
    const Builder::Result tuple = builder.Tuple(elements);
    if (!tuple.ok()) return tuple.status();
    module_.SetShape(*tuple, shape);
    if (user.valid()) {
      module_.ReplaceOperand(user.id(), 0, *tuple);
    } else {
      module_.SetRoot(entry_.id(), *tuple);
    }
    if (!module_.instruction(old.id()).has_users() && !module_.instruction(old.id()).is_root()) module_.Erase(old.id());
    return absl::OkStatus();
  }

  Module& module_;
  const Computation entry_;
  RemarkCollector* const remarks_;
  absl::flat_hash_set<std::pair<int64_t, int64_t>> donated_;  // parameter and element of its tuple
  int64_t copies_ = 0;
};

}  // namespace

void AddCopyRemark(InstructionId copy, Instruction value, Instruction user, RemarkCollector* remarks) {
  if (remarks == nullptr) return;
  const bool overwritten = user.valid();
  Remark remark(overwritten ? RemarkRule::kCopyOfOverwritten : RemarkRule::kCopyOfResult,
                value.module().instruction(copy));
  remark.Text(" copies ").Name("Value", value).Text(" (").Text(value.opcode_text()).Text("): ");
  if (overwritten) {
    remark.Name("User", user).Text(" (").Text(user.opcode_text()).Text(") overwrites it");
    remark.Text(value.opcode() == Opcode::kParameter  ? ", and it is the caller's"
                : value.opcode() == Opcode::kConstant ? ", and it is a constant"
                                                      : ", and others read it too");
  } else {
    remark.Text("a result has a buffer of its own");
    remark.Text(value.opcode() == Opcode::kParameter  ? ", and this is a parameter that is not donated to it"
                : value.opcode() == Opcode::kConstant ? ", and this is a constant"
                                                      : ", and this is in another result, or in another buffer, too");
  }
  remark.Text("; ").Number("Bytes", BufferBytes(value.shape())).Text(" bytes");
  remarks->Add(std::move(remark));
}

absl::StatusOr<int64_t> InsertArgumentCopies(Module& module, RemarkCollector* remarks) {
  if (module.header().is_scheduled || !module.entry().valid()) return 0;
  return ArgumentCopier(&module, RemarksFor(remarks, RemarkCategory::kSchedule)).Run();
}

}  // namespace hlokit
