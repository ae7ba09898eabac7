// SPDX-License-Identifier: Apache-2.0
#include "check/isolation/isolation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "check/comparison/engine_ulps.h"
#include "ir/core/str_cat.h"
#include "ir/digest/fingerprint.h"
#include "ir/graph/traversal.h"

namespace hlokit::interp {
namespace {

Omission OmissionOf(Runnable runnable) {
  switch (runnable) {
    case Runnable::kDevices:
      return Omission::kDevices;
    case Runnable::kDynamic:
      return Omission::kDynamic;
    case Runnable::kYes:
    case Runnable::kNothing:
    case Runnable::kSideEffects:
      break;
  }
  return Omission::kSideEffects;
}

// Returns a key by which the worse of two differences is larger.
double BadnessOf(const IsolatedDifference& d) {
  return d.error.empty() ? d.worst.ulp : std::numeric_limits<double>::infinity();
}

}  // namespace

std::string_view ToString(Omission omission) {
  switch (omission) {
    case Omission::kDevices:
      return ToString(Runnable::kDevices);
    case Omission::kSideEffects:
      return ToString(Runnable::kSideEffects);
    case Omission::kDynamic:
      return ToString(Runnable::kDynamic);
    case Omission::kWork:
      return "more work than the limit";
    case Omission::kNotRecorded:
      return "values were not recorded";
    case Omission::kNoCounterpart:
      return "no counterpart";
    case Omission::kRepeated:
      return "equal to one that ran";
    case Omission::kTime:
      return "no time was left";
  }
  return "";
}

IsolatedDifference& IsolationTally::RowOf(Instruction instruction) {
  int64_t& row = rows_[instruction.id().value];
  if (row < 0) {
    row = static_cast<int64_t>(all_.size());
    all_.push_back({});
    all_.back().instruction = instruction;
  }
  return all_[static_cast<size_t>(row)];
}

void IsolationTally::Omit(Instruction instruction, Omission why) {
  if (omitted_.empty()) omitted_.resize(rows_.size());
  omitted_[instruction.id().value] = static_cast<uint8_t>(1 + static_cast<uint8_t>(why));
}

bool IsolationTally::Has(Instruction instruction) const {
  const uint32_t id = instruction.id().value;
  return rows_[id] >= 0 || (!omitted_.empty() && omitted_[id] != 0);
}

void IsolationTally::Fail(Instruction instruction, int64_t execution, std::string error) {
  IsolatedDifference& row = RowOf(instruction);
  ++row.executions;
  ++row.different;
  if (!row.error.empty()) return;
  row.worst_execution = execution;
  row.error = std::move(error);
}

bool IsolationTally::Compare(Instruction instruction, int64_t execution, absl::Span<const Literal> actual,
                             absl::Span<const Literal> expected,
                             const std::function<ErrorSpec(const Literal&)>& tolerance_of) {
  if (actual.size() != expected.size()) {
    Fail(instruction, execution, StrCat("it has ", actual.size(), " leaves, expected ", expected.size()));
    return false;
  }
  ValueDifference sum;
  for (size_t k = 0; k < actual.size(); ++k) {
    const absl::StatusOr<ValueDifference> leaf =
        CompareValues(actual.subspan(k, 1), expected.subspan(k, 1), tolerance_of(expected[k]));
    if (!leaf.ok()) {
      Fail(instruction, execution, std::string(leaf.status().message()));
      return false;
    }
    const int64_t different = sum.different + leaf->different, elements = sum.elements + leaf->elements;
    if (!leaf->equal() && (sum.equal() || leaf->ulp > sum.ulp)) {
      sum = *leaf;
      sum.leaf = k;
    }
    sum.different = different;
    sum.elements = elements;
  }
  IsolatedDifference& row = RowOf(instruction);
  ++row.executions;
  if (sum.equal()) return true;
  if (++row.different == 1 || (row.error.empty() && sum.ulp > row.worst.ulp)) {
    row.worst = std::move(sum);
    row.worst_execution = execution;
  }
  return false;
}

void IsolationTally::Absolve(Instruction instruction) {
  if (absolved_.empty()) absolved_.resize(rows_.size());
  absolved_[instruction.id().value] = 1;
}

IsolationResult IsolationTally::Finish() {
  IsolationResult result;
  for (const Computation c : module_.computations()) {
    for (const Instruction i : c.instructions()) {
      const int64_t row = rows_[i.id().value];
      if (row < 0) {
        const uint8_t why = omitted_.empty() ? uint8_t{0} : omitted_[i.id().value];
        if (why != 0) ++result.omitted[why - 1];
        continue;
      }
      IsolatedDifference& d = all_[static_cast<size_t>(row)];
      ++result.instructions;
      result.executions += d.executions;
      if (d.different == 0) continue;
      if (!absolved_.empty() && absolved_[i.id().value] != 0) {
        ++result.intermediate;
        continue;
      }
      result.differences.push_back(std::move(d));
    }
  }
  std::stable_sort(result.differences.begin(), result.differences.end(),
                   [](const IsolatedDifference& a, const IsolatedDifference& b) {
                     if (a.error.empty() != b.error.empty()) return b.error.empty();
                     return BadnessOf(a) > BadnessOf(b);
                   });
  return result;
}

std::vector<bool> IsolatedComputations(const Module& module, bool whole_fusions) {
  std::vector<bool> isolated(module.computation_id_bound());
  std::vector<ComputationId> open = {module.entry().id()};
  isolated[module.entry().id().value] = true;
  while (!open.empty()) {
    const ComputationId at = open.back();
    open.pop_back();
    for (const Instruction i : module.computation(at).instructions()) {
      const bool enters = HasTrait(i.opcode(), kControlFlow) || HasTrait(i.opcode(), kGenericAsync);
      if (!enters || (whole_fusions && i.opcode() == Opcode::kFusion)) continue;
      i.ForEachCallee([&](Computation callee) {
        if (isolated[callee.id().value]) return;
        isolated[callee.id().value] = true;
        open.push_back(callee.id());
      });
    }
  }
  return isolated;
}

bool IsolationBudget::IsOver() {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
  over_ = over_ || passed.count() > max_seconds_;
  return over_;
}

bool IsolationBudget::Admits(const Module& part) {
  if (!distinct_) return true;
  const Digest digest = Fingerprint(part);
  return seen_.emplace(digest.high, digest.low).second;
}

namespace {

// The engine that runs the instructions one by one.
EngineKind OtherEngine(EngineKind engine) {
  return EngineIsolation::ObservedEngine(engine) == engine ? RowOf(engine).compared_with : engine;
}

}  // namespace

EngineIsolation::EngineIsolation(const Module& module, EngineKind engine, const IsolationOptions& options)
    : module_(module),
      engine_(engine),
      options_(options),
      runner_(module, OtherEngine(engine), options.run, /*alone=*/true),
      fast_tolerance_(module, options.run),
      tally_(module),
      budget_(options),
      executions_(module.instruction_id_bound()),
      repeated_(module.instruction_id_bound()) {}

ObservationRequest EngineIsolation::Request() const {
  ObservationRequest request;
  request.instructions.resize(module_.instruction_id_bound());
  request.operands = true;
  const std::vector<bool> isolated = IsolatedComputations(module_, options_.whole_fusions);
  for (const Computation c : module_.computations()) {
    if (!isolated[c.id().value]) continue;
    for (const Instruction i : c.instructions()) {
      const bool inner = i.opcode() == Opcode::kFusion && !options_.whole_fusions;
      request.instructions[i.id().value] = !inner && runner_.Classify(i) != Runnable::kNothing;
    }
  }
  return request;
}

absl::Status EngineIsolation::OnValue(InstructionId id, absl::Span<const std::byte* const> values,
                                      absl::Span<const std::byte* const> operands) {
  const Instruction at = module_.instruction(id);
  if (budget_.IsOver()) {
    out_of_time_ = true;
    return absl::DeadlineExceededError(std::string(ToString(Omission::kTime)));
  }
  const int64_t execution = ++executions_[id.value];
  if (execution > options_.max_executions || repeated_[id.value]) return absl::OkStatus();
  if (const Runnable runnable = runner_.Classify(at); runnable != Runnable::kYes) {
    tally_.Omit(at, OmissionOf(runnable));
    return absl::OkStatus();
  }
  if (WorkOf(at) > options_.max_work) {
    tally_.Omit(at, Omission::kWork);
    return absl::OkStatus();
  }
  if (options_.distinct && execution == 1 &&
      !budget_.Admits(query::ExtractPart(at, [](Instruction) { return true; }).module)) {
    repeated_[id.value] = true;
    tally_.Omit(at, Omission::kRepeated);
    return absl::OkStatus();
  }
  std::vector<Literal> given;
  for (const Instruction operand : at.operands()) {
    std::vector<Literal> leaves = LeavesOf(operand.shape(), operands.subspan(given.size()));
    std::move(leaves.begin(), leaves.end(), std::back_inserter(given));
  }
  if (!HasDefinedValues(at.opcode(), given)) return absl::OkStatus();
  const std::vector<Literal> observed = LeavesOf(at.shape(), values);
  const absl::StatusOr<std::vector<Literal>> other = runner_.Run(at, given);
  if (!other.ok()) {
    if (absl::IsCancelled(other.status())) return other.status();
    tally_.Fail(at, execution, std::string(other.status().message()));
    return absl::OkStatus();
  }
  const bool held = ObservedEngine(engine_) == HeldEngine(engine_);  // the observed values are held to the others
  tally_.Compare(at, execution, held ? observed : *other, held ? *other : observed, [&](const Literal& expected) {
    if (options_.tolerance) return options_.tolerance->Of(expected.shape().element_type());
    if (RowOf(engine_).generates_code) return fast_tolerance_.Of(at, given, expected);
    return EngineTolerance(at, given, expected);
  });
  return absl::OkStatus();
}

IsolationResult EngineIsolation::Finish() {
  if (out_of_time_) {
    const ObservationRequest request = Request();
    for (const Computation c : module_.computations()) {
      for (const Instruction i : c.instructions()) {
        if (request.instructions[i.id().value] && !tally_.Has(i)) tally_.Omit(i, Omission::kTime);
      }
    }
  }
  return tally_.Finish();
}

}  // namespace hlokit::interp
