// SPDX-License-Identifier: Apache-2.0
#include "ir/digest/fingerprint_diff.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "ir/digest/fingerprint_internal.h"
#include "ir/digest/header_diff.h"
#include "ir/digest/instruction_diff.h"
#include "ir/text/literal_text.h"
#include "ir/text/printer.h"

namespace hlokit {
namespace {

class Comparison {
 public:
  Comparison(const FingerprintedModule& a, const FingerprintedModule& b) : a_(a), b_(b), options_(a.table->options()) {}

  FingerprintDiff Run();

 private:
  void ListWhatIsLeftOut();

  // Finds the next step and returns true, or describes a difference here and returns false.
  bool StepIntoComputation(Computation a, Computation b, std::string caller);
  bool StepIntoUncalled();
  bool StepFromPair(Instruction a, Instruction b);
  bool StepToCallee(Instruction a, Instruction b);
  bool StepToControl(Instruction a, Instruction b);

  void DescribePair(Instruction a, Instruction b);
  void DescribeInsertion(Instruction a, Instruction b);

  Digest Of(Instruction i) const { return (&i.module() == a_.module ? a_ : b_).table->of(i.id()); }
  Digest Of(Computation c) const { return (&c.module() == a_.module ? a_ : b_).table->of(c.id()); }
  // Returns the instructions of `from` whose digests are not in `others`, or are there fewer times.
  std::vector<Instruction> Unmatched(const std::vector<Instruction>& from,
                                     const std::vector<Instruction>& others) const;
  void Report(std::string text) { diff_.differences.push_back(std::move(text)); }

  const FingerprintedModule a_, b_;
  const FingerprintOptions options_;
  FingerprintDiff diff_;
};

// ---- path ----

std::vector<Instruction> Comparison::Unmatched(const std::vector<Instruction>& from,
                                               const std::vector<Instruction>& others) const {
  std::vector<Digest> digests;
  for (Instruction i : others) digests.push_back(Of(i));
  std::sort(digests.begin(), digests.end());
  std::vector<uint8_t> used(digests.size());
  std::vector<Instruction> unmatched;
  for (Instruction i : from) {
    size_t at = static_cast<size_t>(std::lower_bound(digests.begin(), digests.end(), Of(i)) - digests.begin());
    while (at < digests.size() && digests[at] == Of(i) && used[at]) ++at;
    if (at < digests.size() && digests[at] == Of(i)) {
      used[at] = 1;
    } else {
      unmatched.push_back(i);
    }
  }
  return unmatched;
}

std::vector<Instruction> SinksOf(Computation computation) {
  std::vector<Instruction> sinks;
  for (Instruction i : computation.instructions()) {
    if (IsSink(i)) sinks.push_back(i);
  }
  return sinks;
}

bool Comparison::StepIntoComputation(Computation a, Computation b, std::string caller) {
  FingerprintStep step;
  step.computation_a = a;
  step.computation_b = b;
  step.caller = std::move(caller);
  const auto take = [&](FingerprintStep::Via via, int64_t index, Instruction at_a, Instruction at_b) {
    step.via = via;
    step.index = index;
    step.a = at_a;
    step.b = at_b;
    diff_.path.push_back(std::move(step));
    return diff_.path.back().a.valid() && diff_.path.back().b.valid();
  };
  if (a.execution_thread() != b.execution_thread()) {
    Report(StrCat("execution thread of ", step.caller, ": ", Versus(a.execution_thread(), b.execution_thread())));
    return false;
  }
  if (a.parameter_count() != b.parameter_count()) {
    Report(StrCat("parameters of ", step.caller,
                  " computation: ", Versus(StrCat(a.parameter_count()), StrCat(b.parameter_count()))));
  }
  const int64_t parameters = std::min(a.parameter_count(), b.parameter_count());
  for (int64_t i = 0; i < parameters; ++i) {
    const Instruction pa = a.parameter(i), pb = b.parameter(i);
    if (pa.valid() && pb.valid() && Of(pa) != Of(pb)) return take(FingerprintStep::Via::kParameter, i, pa, pb);
  }
  if (a.parameter_count() != b.parameter_count()) return false;
  const Instruction ra = a.root(), rb = b.root();
  if (ra.valid() && rb.valid() && Of(ra) != Of(rb)) return take(FingerprintStep::Via::kRoot, 0, ra, rb);
  const std::vector<Instruction> sinks_a = SinksOf(a), sinks_b = SinksOf(b);
  const std::vector<Instruction> only_a = Unmatched(sinks_a, sinks_b), only_b = Unmatched(sinks_b, sinks_a);
  if (!only_a.empty() || !only_b.empty()) {
    const Instruction sa = only_a.empty() ? Instruction() : only_a[0];
    const Instruction sb = only_b.empty() ? Instruction() : only_b[0];
    if (take(FingerprintStep::Via::kSink, 0, sa, sb)) return true;
    Report(sa.valid() ? "only in the first: unused, but part of the fingerprint"
                      : "only in the second: unused, but part of the fingerprint");
    return false;
  }
  Report(StrCat("order of the instructions of ", step.caller, " computation"));
  return false;
}

bool Comparison::StepIntoUncalled() {
  const std::vector<ComputationId>& ids_a = a_.table->uncalled();
  const std::vector<ComputationId>& ids_b = b_.table->uncalled();
  const auto unmatched = [](const FingerprintedModule& from, const FingerprintedModule& others) {
    absl::flat_hash_set<Digest> digests;
    for (ComputationId id : others.table->uncalled()) digests.insert(others.table->of(id));
    std::vector<Computation> result;
    for (ComputationId id : from.table->uncalled()) {
      if (!digests.contains(from.table->of(id))) result.push_back(from.module->computation(id));
    }
    return result;
  };
  const std::vector<Computation> only_a = unmatched(a_, b_), only_b = unmatched(b_, a_);
  if (!only_a.empty() && !only_b.empty()) return StepIntoComputation(only_a[0], only_b[0], "uncalled");
  if (!only_a.empty() || !only_b.empty()) {
    Report(only_a.empty() ? StrCat("uncalled computation only in the second: ", only_b[0].name())
                          : StrCat("uncalled computation only in the first: ", only_a[0].name()));
  } else if (ids_a.size() != ids_b.size()) {
    Report(StrCat("uncalled computations: ", ids_a.size(), " vs ", ids_b.size()));
  }
  return false;
}

bool Comparison::StepToControl(Instruction a, Instruction b) {
  const std::vector<Instruction> control_a = a.control_predecessors(), control_b = b.control_predecessors();
  if (control_a.size() != control_b.size()) return false;
  const std::vector<Instruction> only_a = Unmatched(control_a, control_b), only_b = Unmatched(control_b, control_a);
  if (only_a.empty() || only_b.empty()) return false;
  diff_.path.push_back({FingerprintStep::Via::kControl, 0, {}, {}, "", only_a[0], only_b[0]});
  return true;
}

bool Comparison::StepToCallee(Instruction a, Instruction b) {
  for (const AttrValue& value : a.attrs()) {
    if (!NamesComputations(value.attr)) continue;
    const std::optional<uint32_t> other = b.payload(value.attr);
    if (!other.has_value()) return false;
    std::vector<ComputationId> callees_a, callees_b;
    a.module().ForEachCallee(value, [&](ComputationId callee) { callees_a.push_back(callee); });
    b.module().ForEachCallee({value.attr, *other}, [&](ComputationId callee) { callees_b.push_back(callee); });
    if (callees_a.size() != callees_b.size()) return false;
    for (size_t i = 0; i < callees_a.size(); ++i) {
      const Computation ca = a.module().computation(callees_a[i]), cb = b.module().computation(callees_b[i]);
      if (Of(ca) == Of(cb)) continue;
      const std::string_view attr = ToString(value.attr);
      return StepIntoComputation(ca, cb,
                                 HoldsList(InfoOf(value.attr).type) ? StrCat(attr, "[", i, "]") : std::string(attr));
    }
  }
  return false;
}

bool Comparison::StepFromPair(Instruction a, Instruction b) {
  // Operands of different operations do not correspond, so the path ends here.
  if (a.opcode() != b.opcode() || a.operand_count() != b.operand_count()) {
    DescribePair(a, b);
    return false;
  }
  for (int64_t i = 0; i < a.operand_count(); ++i) {
    if (Of(a.operand(i)) == Of(b.operand(i))) continue;
    diff_.path.push_back({FingerprintStep::Via::kOperand, i, {}, {}, "", a.operand(i), b.operand(i)});
    return true;
  }
  if (StepToControl(a, b)) return true;
  const size_t reported = diff_.differences.size();
  if (StepToCallee(a, b)) return true;
  // A difference of the called computation ends the path, unless one of its parameters continues it.
  if (diff_.differences.size() == reported) DescribePair(a, b);
  return false;
}

// ---- differences ----

// If one side is an operand of the other, an operation was inserted in between.
void Comparison::DescribeInsertion(Instruction a, Instruction b) {
  for (int64_t i = 0; i < b.operand_count(); ++i) {
    if (Of(b.operand(i)) == Of(a))
      return Report(StrCat("the second applies ", b.opcode_text(), " to the first's value"));
  }
  for (int64_t i = 0; i < a.operand_count(); ++i) {
    if (Of(a.operand(i)) == Of(b))
      return Report(StrCat("the first applies ", a.opcode_text(), " to the second's value"));
  }
}

void Comparison::DescribePair(Instruction a, Instruction b) {
  std::vector<InstructionDifference> differences = InstructionDifferences(a, b, options_);
  for (InstructionDifference& d : differences) Report(std::move(d.text));
  if (a.opcode() != b.opcode()) {
    DescribeInsertion(a, b);
  } else if (differences.empty()) {
    Report("position among identical instructions with side effects");
  }
}

// ---- equal fingerprints ----

void Comparison::ListWhatIsLeftOut() {
  const Module& a = *a_.module;
  const Module& b = *b_.module;
  const auto differs_with = [&](bool FingerprintOptions::*option) {
    if (options_.*option) return false;
    FingerprintOptions options = options_;
    options.*option = true;
    return Fingerprint(a, options) != Fingerprint(b, options);
  };
  const std::pair<std::string_view, bool FingerprintOptions::*> options[] = {
      {"layout", &FingerprintOptions::layout},
      {"sharding", &FingerprintOptions::sharding},
      {"metadata", &FingerprintOptions::metadata},
      {"frontend attributes", &FingerprintOptions::frontend_attributes},
      {"schedule", &FingerprintOptions::schedule}};
  for (const auto& [name, option] : options) {
    if (differs_with(option)) diff_.ignored_differences.emplace_back(name);
  }

  const auto names = [](const Module& module) {
    std::vector<std::string_view> all{module.name()};
    for (Computation c : module.computations()) {
      all.push_back(c.name());
      for (Instruction i : c.instructions()) all.push_back(i.name());
    }
    std::sort(all.begin(), all.end());
    return all;
  };
  if (names(a) != names(b)) diff_.ignored_differences.emplace_back("names");
  const auto order = [](const FingerprintedModule& m) {
    std::vector<Digest> all;
    for (Computation c : m.module->computations()) {
      all.push_back(m.table->of(c.id()));
      for (Instruction i : c.instructions()) all.push_back(m.table->of(i.id()));
    }
    return all;
  };
  std::vector<Digest> order_a = order(a_), order_b = order(b_);
  if (order_a == order_b) return;
  std::sort(order_a.begin(), order_a.end());
  std::sort(order_b.begin(), order_b.end());
  diff_.ignored_differences.emplace_back(order_a == order_b ? "order" : "duplicates");
}

FingerprintDiff Comparison::Run() {
  diff_.same = a_.table->module() == b_.table->module();
  if (diff_.same) {
    ListWhatIsLeftOut();
    return std::move(diff_);
  }
  diff_.header = HeaderDifferences(*a_.module, *b_.module, options_);
  const Computation entry_a = a_.module->entry(), entry_b = b_.module->entry();
  bool found = false;
  if (entry_a.valid() != entry_b.valid()) {
    Report(entry_a.valid() ? "only the first has an entry computation" : "only the second has an entry computation");
  } else if (entry_a.valid() && Of(entry_a) != Of(entry_b)) {
    found = StepIntoComputation(entry_a, entry_b, "entry");
  } else {
    found = StepIntoUncalled();
  }
  // Digests depend on the digests of operands, so the path goes down. Only a cycle, in an invalid module, could return
  // to a visited pair.
  absl::flat_hash_set<uint32_t> visited;
  while (found) {
    const Instruction a = diff_.path.back().a, b = diff_.path.back().b;
    if (!visited.insert(a.id().value).second) {
      Report("cycle among operands or calls");
      break;
    }
    found = StepFromPair(a, b);
  }
  if (diff_.header.empty() && diff_.path.empty() && diff_.differences.empty()) {
    diff_.header.emplace_back("origin recovery table or debug attributes");
  }
  return std::move(diff_);
}

}  // namespace

FingerprintDiff CompareFingerprints(const FingerprintedModule& a, const FingerprintedModule& b) {
  return Comparison(a, b).Run();
}

}  // namespace hlokit
