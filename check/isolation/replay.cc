// SPDX-License-Identifier: Apache-2.0
#include "check/isolation/replay.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "check/comparison/engine_ulps.h"
#include "ir/graph/instruction_queries.h"
#include "ir/graph/traversal.h"
#include "ir/text/printer.h"
#include "passes/diff/matching.h"

namespace hlokit::interp {
namespace {

// Returns the computation whose root is the value of a fusion or call; invalid for others.
Computation CalleeOf(Instruction i) {
  if (i.opcode() == Opcode::kFusion) return i.computation_attr(Attr::kCalls);
  if (i.opcode() == Opcode::kCall) return i.computation_attr(Attr::kToApply);
  return Computation();
}

bool HaveSameShape(Instruction a, Instruction b) { return SameShape(a.shape(), b.shape(), /*ignore_layout=*/true); }

class Replayer {
 public:
  Replayer(const Module& module, const Module& recorded, const RecordedValues& values, const Counterparts& counterparts,
           const ReplayOptions& options)
      : module_(module),
        recorded_(recorded),
        values_(values),
        counterparts_(counterparts),
        options_(options),
        runner_(module, options.engine, options.isolation.run),
        tally_(module),
        budget_(options.isolation),
        differs_(module.instruction_id_bound()) {}

  absl::StatusOr<IsolationResult> Run() {
    const std::vector<bool> isolated = IsolatedComputations(module_, WholeFusions());
    for (const Computation c : module_.computations()) {
      if (!isolated[c.id().value]) continue;
      for (const InstructionId id : PostOrder(c)) {
        if (absl::Status s = Compare(module_.instruction(id)); !s.ok()) return s;
      }
    }
    for (uint32_t id : intermediate_) {
      const Instruction i = module_.instruction(InstructionId(id));
      if (!IsResult(i)) tally_.Absolve(i);
    }
    return tally_.Finish();
  }

 private:
  // Fusions of another module are compared whole: their instructions may have been fused since.
  bool WholeFusions() const { return options_.isolation.whole_fusions || !counterparts_.same_module; }

  // Returns true for results of a computation, which are observed.
  static bool IsResult(Instruction i) {
    if (i.is_root()) return true;
    for (const Instruction user : i.users()) {
      if (user.is_root() && user.opcode() == Opcode::kTuple) return true;
    }
    return false;
  }

  InstructionId CounterpartOf(Instruction i) const { return counterparts_.of[i.id().value]; }
  bool IsConstant(InstructionId id) const { return recorded_.instruction(id).opcode() == Opcode::kConstant; }
  // Returns true if the value of an execution can be read.
  bool IsRecorded(Instruction i, int64_t execution) const {
    const InstructionId counterpart = CounterpartOf(i);
    if (!counterpart.valid()) return false;
    return (IsConstant(counterpart) ? 1 : execution) <= values_.Executions(counterpart);
  }
  absl::StatusOr<std::vector<Literal>> ValueOf(Instruction i, int64_t execution) const {
    const InstructionId counterpart = CounterpartOf(i);
    return values_.Value(counterpart, IsConstant(counterpart) ? 1 : execution);
  }

  // A constant of another module may have another value; that of an elided one is random.
  bool IsOwnConstant(Instruction i) const { return !counterparts_.same_module && HasKnownValue(i); }

  // Returns true if the instruction computes something, other than what runs in its computations and is compared there.
  bool IsUnit(Instruction i) const {
    if (i.opcode() == Opcode::kFusion) return WholeFusions();
    if (CallsSequentialCode(i.opcode())) {
      bool whole = false;
      i.ForEachCallee([&](Computation callee) { whole |= !CounterpartOf(callee.root()).valid(); });
      return whole;
    }
    return IsOwnConstant(i) || runner_.Classify(i) != Runnable::kNothing;
  }

  // Returns why the part cannot run; nullopt if it can.
  std::optional<Omission> WhyNot(const query::Part& part, int64_t execution) const {
    double work = 0;
    for (const Instruction i : part.module.entry().instructions()) {
      if (i.opcode() == Opcode::kParameter) continue;
      work += WorkOf(i);
    }
    if (work > options_.isolation.max_work) return Omission::kWork;
    for (const Instruction input : part.inputs) {
      if (!IsRecorded(input, execution)) return Omission::kNotRecorded;
      for (const Shape leaf : Leaves(input.shape())) {
        if (leaf.IsToken()) return Omission::kSideEffects;
      }
    }
    return std::nullopt;
  }

  // Returns the part that computes `i` from the nearest values that are recorded; with `deep` not from those that
  // differ. Sets `omission` if it cannot run.
  query::Part PartOf(Instruction i, int64_t execution, bool deep, std::optional<Omission>* omission) const {
    Runnable runnable = runner_.ClassifyInPart(i);
    query::Part part = query::ExtractPart(i, [&](Instruction operand) {
      const bool input = IsRecorded(operand, execution) && !(deep && differs_[operand.id().value]);
      if (!input && operand.opcode() != Opcode::kParameter && runnable == Runnable::kYes) {
        runnable = runner_.ClassifyInPart(operand);
      }
      return input;
    });
    *omission = std::nullopt;
    if (runnable == Runnable::kDevices) *omission = Omission::kDevices;
    if (runnable == Runnable::kSideEffects) *omission = Omission::kSideEffects;
    if (runnable == Runnable::kDynamic) *omission = Omission::kDynamic;
    if (!*omission) *omission = WhyNot(part, execution);
    return part;
  }

  absl::Status Compare(Instruction i) {
    if (!IsUnit(i)) return absl::OkStatus();
    if (!CounterpartOf(i).valid()) {
      tally_.Omit(i, Omission::kNoCounterpart);
      return absl::OkStatus();
    }
    if (budget_.IsOver()) {
      tally_.Omit(i, Omission::kTime);
      return absl::OkStatus();
    }
    const int64_t executions = std::min(options_.isolation.max_executions, values_.Executions(CounterpartOf(i)));
    if (executions == 0) tally_.Omit(i, Omission::kNotRecorded);
    // The part stays the same as long as its inputs are recorded. The engine reads its module.
    std::optional<query::Part> part;
    std::unique_ptr<Engine> engine;
    for (int64_t execution = 1; execution <= executions; ++execution) {
      if (options_.poll) {
        if (absl::Status s = options_.poll(); !s.ok()) return s;
      }
      if (execution > 1 && budget_.IsOver()) return absl::OkStatus();
      const auto is_recorded = [&](Instruction input) { return IsRecorded(input, execution); };
      if (!part || !std::all_of(part->inputs.begin(), part->inputs.end(), is_recorded)) {
        std::optional<Omission> omission;
        engine = nullptr;
        part.emplace(PartOf(i, execution, /*deep=*/false, &omission));
        if (!omission && execution == 1 && !budget_.Admits(part->module)) omission = Omission::kRepeated;
        if (omission) {
          tally_.Omit(i, *omission);
          return absl::OkStatus();
        }
      }
      const absl::StatusOr<std::vector<Literal>> expected = ValueOf(i, execution);
      if (!expected.ok()) return expected.status();
      if (absl::Status s = CompareExecution(i, execution, *part, &engine, *expected); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  // Sets `inputs` to the recorded values of the part's inputs.
  absl::Status ReadInputs(const query::Part& part, int64_t execution, std::vector<Literal>* inputs) const {
    for (const Instruction input : part.inputs) {
      absl::StatusOr<std::vector<Literal>> value = ValueOf(input, execution);
      if (!value.ok()) return value.status();
      std::move(value->begin(), value->end(), std::back_inserter(*inputs));
    }
    return absl::OkStatus();
  }

  // `engine` is that of the part, or null before its first run.
  absl::Status CompareExecution(Instruction i, int64_t execution, const query::Part& part,
                                std::unique_ptr<Engine>* engine, absl::Span<const Literal> expected) {
    std::vector<Literal> inputs;
    if (absl::Status s = ReadInputs(part, execution, &inputs); !s.ok()) return s;
    if (!HasDefinedValues(i.opcode(), inputs)) return absl::OkStatus();
    absl::StatusOr<std::vector<Literal>> actual = runner_.RunPart(part, inputs, engine);
    if (!actual.ok()) {
      if (absl::IsCancelled(actual.status())) return actual.status();
      tally_.Fail(i, execution, std::string(actual.status().message()));
      return absl::OkStatus();
    }
    const auto tolerance_of = [&](const Literal& value) {
      const ElementType type = value.shape().element_type();
      if (options_.isolation.tolerance) return options_.isolation.tolerance->Of(type);
      return counterparts_.same_module ? EngineTolerance(i, inputs, value) : Tolerance::OfPass(0).Of(type);
    };
    if (AreEqual(*actual, expected, tolerance_of)) {
      tally_.Compare(i, execution, *actual, expected, tolerance_of);
      return absl::OkStatus();
    }
    // Operands that differ themselves may be another way to the same value.
    std::vector<uint32_t> suspects;
    for (const Instruction input : part.inputs) {
      if (differs_[input.id().value]) suspects.push_back(input.id().value);
    }
    if (!suspects.empty()) {
      std::optional<Omission> omission;
      const query::Part whole = PartOf(i, execution, /*deep=*/true, &omission);
      std::vector<Literal> deep_inputs;
      if (!omission) {
        if (absl::Status s = ReadInputs(whole, execution, &deep_inputs); !s.ok()) return s;
        absl::StatusOr<std::vector<Literal>> again = runner_.RunPart(whole, deep_inputs);
        if (again.ok() && AreEqual(*again, expected, tolerance_of)) {
          intermediate_.insert(intermediate_.end(), suspects.begin(), suspects.end());
          actual = std::move(again);
        }
      }
    }
    if (!tally_.Compare(i, execution, *actual, expected, tolerance_of)) differs_[i.id().value] = true;
    return absl::OkStatus();
  }

  static bool AreEqual(absl::Span<const Literal> actual, absl::Span<const Literal> expected,
                       const std::function<ErrorSpec(const Literal&)>& tolerance_of) {
    if (actual.size() != expected.size()) return false;
    for (size_t k = 0; k < actual.size(); ++k) {
      const absl::StatusOr<ValueDifference> leaf =
          CompareValues(actual.subspan(k, 1), expected.subspan(k, 1), tolerance_of(expected[k]));
      if (!leaf.ok() || !leaf->equal()) return false;
    }
    return true;
  }

  const Module& module_;
  const Module& recorded_;
  const RecordedValues& values_;
  const Counterparts& counterparts_;
  const ReplayOptions& options_;
  InstructionRunner runner_;
  IsolationTally tally_;
  IsolationBudget budget_;
  std::vector<bool> differs_;           // by instruction id
  std::vector<uint32_t> intermediate_;  // instruction ids
};

}  // namespace

Counterparts FindCounterparts(const Module& recorded, const Module& module) {
  Counterparts counterparts;
  counterparts.of.resize(module.instruction_id_bound());
  if (ToString(recorded, PrintOptions::Lossless()) == ToString(module, PrintOptions::Lossless())) {
    counterparts.same_module = true;
    absl::flat_hash_map<std::string_view, InstructionId> ids;
    for (const Computation c : recorded.computations()) {
      for (const Instruction i : c.instructions()) ids.emplace(i.name(), i.id());
    }
    for (const Computation c : module.computations()) {
      for (const Instruction i : c.instructions()) counterparts.of[i.id().value] = ids.at(i.name());
    }
    return counterparts;
  }
  const ModuleMatching matching = MatchModules(recorded, module);
  const auto set = [&](Instruction i, InstructionId in_recorded) {
    InstructionId& counterpart = counterparts.of[i.id().value];
    if (counterpart.valid() || !in_recorded.valid()) return;
    if (HaveSameShape(recorded.instruction(in_recorded), i)) counterpart = in_recorded;
  };
  for (const ComputationId id : ComputationPostOrder(module)) {
    for (const Instruction i : module.computation(id).instructions()) {
      set(i, matching.in_a[i.id().value]);
      const Computation callee = CalleeOf(i);
      if (callee.valid()) set(i, counterparts.of[callee.root().id().value]);
    }
  }
  // What is the root of a fusion in the recorded module.
  for (const Computation c : recorded.computations()) {
    for (const Instruction i : c.instructions()) {
      const Computation callee = CalleeOf(i);
      if (!callee.valid() || matching.in_b[i.id().value].valid()) continue;
      const InstructionId root = matching.in_b[callee.root().id().value];
      if (root.valid() && module.instruction(root).opcode() != Opcode::kParameter) {
        set(module.instruction(root), i.id());
      }
    }
  }
  return counterparts;
}

std::vector<bool> NeededValues(const Module& recorded, const Counterparts& counterparts) {
  std::vector<bool> needed(recorded.instruction_id_bound());
  for (const InstructionId id : counterparts.of) {
    if (id.valid()) needed[id.value] = true;
  }
  return needed;
}

absl::StatusOr<IsolationResult> Replay(const Module& module, const Module& recorded, const RecordedValues& values,
                                       const Counterparts& counterparts, const ReplayOptions& options) {
  return Replayer(module, recorded, values, counterparts, options).Run();
}

}  // namespace hlokit::interp
