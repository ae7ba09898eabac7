// SPDX-License-Identifier: Apache-2.0
// Runs the verifier: the first pass, then shapes and the checks of each opcode, then the checks of the whole module.
#include "ir/verify/verifier.h"

#include <array>
#include <string_view>
#include <vector>

#include "ir/inference/shape_inference.h"
#include "ir/verify/context.h"

namespace hlokit {
namespace verify_internal {
namespace {

template <InstructionCheck... kChecks>
void All(VerifierContext& v, Instruction i) {
  (kChecks(v, i), ...);
}

using CheckTable = std::array<InstructionCheck, kOpcodeCount + 1>;

// Returns the check of an opcode beyond its shape; null if there is none.
constexpr CheckTable kChecks = [] {
  CheckTable table{};
  const auto set = [&table](Opcode opcode, InstructionCheck check) { table[static_cast<size_t>(opcode)] = check; };
  set(Opcode::kAllGather, All<CheckGroups, CheckAllGather>);
  set(Opcode::kAllGatherDone, CheckDone);
  set(Opcode::kAllGatherStart, All<CheckGroups, CheckAllGather, CheckStart>);
  set(Opcode::kAllReduce, All<CheckGroups, CheckAllReduce, CheckReducerParameters>);
  set(Opcode::kAllReduceDone, CheckDone);
  set(Opcode::kAllReduceStart, All<CheckGroups, CheckAllReduce, CheckReducerParameters, CheckStart>);
  set(Opcode::kAllToAll, All<CheckGroups, CheckAllToAll>);
  set(Opcode::kAsyncDone, CheckAsyncOp);
  set(Opcode::kAsyncStart, CheckAsyncOp);
  set(Opcode::kAsyncUpdate, CheckAsyncOp);
  set(Opcode::kBroadcast, CheckBroadcast);
  set(Opcode::kCall, CheckCall);
  set(Opcode::kCollectiveBroadcast, CheckGroups);
  set(Opcode::kCollectivePermute, CheckCollectivePermute);
  set(Opcode::kCollectivePermuteDone, CheckDone);
  set(Opcode::kCollectivePermuteStart, All<CheckCollectivePermute, CheckStart>);
  set(Opcode::kCollectiveReduce, All<CheckGroups, CheckReducerParameters>);
  set(Opcode::kCompare, CheckCompare);
  set(Opcode::kConditional, CheckConditional);
  set(Opcode::kConstant, CheckConstant);
  set(Opcode::kCopyDone, CheckDone);
  set(Opcode::kCopyStart, CheckStart);
  set(Opcode::kCustomCall, CheckCustomCall);
  set(Opcode::kFusion, CheckFusion);
  set(Opcode::kParameter, CheckParameter);
  set(Opcode::kRaggedAllToAll, CheckGroups);
  set(Opcode::kRecv, CheckSendRecv);
  set(Opcode::kRecvDone, CheckDone);
  set(Opcode::kReduceScatter, All<CheckGroups, CheckReduceScatter, CheckReducerParameters>);
  set(Opcode::kSend, CheckSendRecv);
  set(Opcode::kSendDone, CheckDone);
  set(Opcode::kWhile, CheckWhile);
  return table;
}();

void CheckInstructions(VerifierContext& v) {
  const Module& module = v.module;
  const Context& context = module.context();
  std::vector<Shape> operands;
  for (uint32_t id = 0; id < module.computation_id_bound(); ++id) {
    const ComputationRecord& computation = module.record(ComputationId(id));
    if (computation.erased) continue;
    for (InstructionId at = computation.first; at.valid(); at = module.record(at).next) {
      const InstructionRecord& record = module.record(at);
      const Instruction i(&module, at);
      if (v.is_invalid(i)) continue;
      if (v.limit_reached()) return;
      operands.clear();
      for (Instruction operand : i.operands()) operands.push_back(operand.shape());
      const Shape declared = context.shape(record.shape);
      if (declared.has_unbounded_dims() && !v.options.allow_unbounded_dynamism) {
        v.Report(i, DiagnosticKind::kInference, "has an unbounded dimension");
        v.MarkInvalid(i);
        continue;
      }
      if (v.HasInvalidLayout(declared)) {
        CheckLayoutFields(v, i);
        v.MarkInvalid(i);
        continue;
      }
      const absl::Status status = CheckShape({&module, record.opcode, operands, module.attrs_of(record), declared},
                                             v.options.allow_mixed_precision);
      if (!status.ok()) {
        const bool call = HasTrait(record.opcode, kControlFlow);
        v.Report(i, call ? DiagnosticKind::kCallSignature : DiagnosticKind::kInference,
                 std::string_view(status.message().data(), status.message().size()));
        v.MarkInvalid(i);
        continue;
      }
      if (const InstructionCheck check = kChecks[static_cast<size_t>(record.opcode)]; check != nullptr) check(v, i);
      if (v.options.layout_sensitive) CheckLayouts(v, i);
    }
  }
}

void Run(VerifierContext& v) {
  if (!CheckStructure(v) || !CheckOrder(v) || v.limit_reached()) return;
  CheckInstructions(v);
  CheckThreads(v);
  CheckAsyncChains(v);
  CheckChannels(v);
  CheckBuffers(v);
  CheckHeader(v);
}

}  // namespace
}  // namespace verify_internal

void VerifyModule(const Module& module, const VerifierOptions& options, DiagnosticSink* sink) {
  verify_internal::VerifierContext v(module, options, sink);
  verify_internal::Run(v);
}

}  // namespace hlokit
