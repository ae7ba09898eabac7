// SPDX-License-Identifier: Apache-2.0
// Verifies calls: other callers, fusion bodies, shardings on both sides, threads, composite calls. (Shape inference
// checks operands against parameters and results.)
#include <charconv>

#include "ir/core/str_cat.h"
#include "ir/graph/side_effects.h"
#include "ir/sharding/tiling.h"
#include "ir/verify/context.h"

namespace hlokit::verify_internal {
namespace {

constexpr DiagnosticKind kCallSignatureKind = DiagnosticKind::kCallSignature;

// Requires the same sharding of all `instructions` that have one.
class SameSharding {
 public:
  SameSharding(VerifierContext& v, Instruction caller) : v_(v), caller_(caller) { Add(caller); }

  void Add(Instruction i) {
    const std::optional<uint32_t> sharding = i.payload(Attr::kSharding);
    if (!sharding) return;
    if (!first_.valid()) {
      first_ = i;
      sharding_ = *sharding;
    } else if (*sharding != sharding_ && !reported_ &&
               !hlokit::SameSharding(v_.module.context(), ListId(*sharding), ListId(sharding_))) {
      reported_ = true;
      v_.Report(caller_, DiagnosticKind::kSharding,
                StrCat("`", first_.name(), "` and `", i.name(), "` have the same operand with different shardings"));
    }
  }

 private:
  VerifierContext& v_;
  Instruction caller_;
  Instruction first_;
  uint32_t sharding_ = 0;
  bool reported_ = false;
};

void CheckComposite(VerifierContext& v, Instruction i) {
  const std::optional<std::string_view> name = FrontendAttribute(i, "composite.name");
  if (!name || name->empty()) {
    v.Report(i, DiagnosticKind::kAttributeValue, "missing frontend attribute `composite.name` for a composite call");
  }
  const std::optional<std::string_view> attributes = FrontendAttribute(i, "composite.attributes");
  if (attributes && attributes->empty()) {
    v.Report(i, DiagnosticKind::kAttributeValue,
             "empty frontend attribute `composite.attributes`; expected at least `{}`");
  }
  if (const std::optional<std::string_view> text = FrontendAttribute(i, "composite.version")) {
    int64_t version = -1;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), version);
    if (error != std::errc() || end != text->data() + text->size() || version < 0) {
      v.Report(i, DiagnosticKind::kAttributeValue,
               StrCat("the frontend attribute `composite.version` is \"", *text, "\"; expected a non-negative number"));
    }
  }
}

// Checks a fusion body: the root depends on every instruction.
void CheckFusedComputation(VerifierContext& v, Instruction fusion, Computation fused) {
  const Instruction root = fused.root();
  for (Instruction i : fused.instructions()) {
    if (i == root) {
      if (i.has_users())
        v.Report(i, kCallSignatureKind, StrCat("is the root of fusion `", fusion.name(), "`, but has users"));
    } else if (!i.has_users() && !HasSideEffectNoRecurse(i)) {
      v.Report(i, kCallSignatureKind, StrCat("is in fusion `", fusion.name(), "` but has no users"));
    }
  }
}

}  // namespace

void CheckCall(VerifierContext& v, Instruction i) {
  if (i.bool_attr(Attr::kIsComposite)) CheckComposite(v, i);
}

void CheckConditional(VerifierContext& v, Instruction i) {
  SameSharding shardings(v, i);
  i.ForEachCallee([&](Computation branch) { shardings.Add(branch.root()); });
}

void CheckFusion(VerifierContext& v, Instruction i) {
  const Computation fused = i.computation_attr(Attr::kCalls);
  const Callers& callers = v.callers(fused);
  if (callers.fusion == i.id()) {
    CheckFusedComputation(v, i, fused);
  } else {
    v.Report(i, kCallSignatureKind,
             StrCat("calls `", fused.name(), "`, which belongs to fusion `",
                    v.module.instruction(callers.fusion).name(), "`"));
  }
  CheckFusionAliasing(v, i);
}

void CheckWhile(VerifierContext& v, Instruction i) {
  const Computation body = i.computation_attr(Attr::kBody);
  SameSharding shardings(v, i);
  shardings.Add(body.root());
  shardings.Add(body.parameter(0));
  shardings.Add(i.computation_attr(Attr::kCondition).parameter(0));
}

// Checks the reducer of a collective. XLA does not verify it, and fails later.
void CheckReducerParameters(VerifierContext& v, Instruction i) {
  const Computation reducer = i.computation_attr(Attr::kToApply);
  if (reducer.parameter_count() % 2 != 0 || reducer.parameter_count() == 0) {
    v.Report(i, kCallSignatureKind,
             StrCat("reducer `", reducer.name(), "` has ", Counted(reducer.parameter_count(), "parameter"),
                    "; expected an even number of at least 2"));
  }
}

// Checks that a computation runs on the thread of its caller; only an async-start may change it.
void CheckThreads(VerifierContext& v) {
  for (const CallEdge& edge : v.call_edges) {
    const Instruction caller = v.module.instruction(edge.caller);
    const Computation callee = v.module.computation(edge.callee);
    const bool async = HasTrait(caller.opcode(), kGenericAsync);
    if (!async && caller.parent().record().execution_thread == callee.record().execution_thread) continue;
    std::string_view thread = caller.parent().execution_thread();
    if (async) {
      thread = caller.string_attr(Attr::kAsyncExecutionThread);
      if (thread.empty()) thread = "main";
    }
    if (thread == callee.execution_thread()) continue;
    v.Report(caller, async ? DiagnosticKind::kAsyncPair : kCallSignatureKind,
             StrCat("runs on thread \"", thread, "\" and calls `", callee.name(), "` of thread \"",
                    callee.execution_thread(), "\""));
  }
}

}  // namespace hlokit::verify_internal
