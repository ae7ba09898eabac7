// SPDX-License-Identifier: Apache-2.0
// Verifies chains of async-start, async-update and async-done around a computation: each member continues the state of
// its predecessor. The state may pass through tuples, barriers, copies and loops. (Shape inference checks the operands
// and results that a member binds; this file checks the state against the computation, which only the start names.)
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "ir/core/hashing.h"
#include "ir/core/str_cat.h"
#include "ir/inference/shape_inference.h"
#include "ir/ops/opcode_set.h"
#include "ir/ops/opcode_table.h"
#include "ir/verify/context.h"

namespace hlokit::verify_internal {
namespace {

constexpr DiagnosticKind kAsyncKind = DiagnosticKind::kAsyncPair;

bool IsState(Shape s) { return s.IsTuple() && s.tuple_size() >= 2 && s.element(0).IsTuple(); }

bool IsProducer(Instruction i) { return OpcodeSet{Opcode::kAsyncStart, Opcode::kAsyncUpdate}.Contains(i.opcode()); }
bool IsConsumer(Instruction i) { return OpcodeSet{Opcode::kAsyncUpdate, Opcode::kAsyncDone}.Contains(i.opcode()); }

// Returns true if `a` is `b` with elements missing at the ends of tuples.
bool IsPrefix(VerifierContext& v, Shape a, Shape b) {
  absl::InlinedVector<std::pair<Shape, Shape>, 16> stack;
  stack.push_back({a, b});
  while (!stack.empty()) {
    const auto [x, y] = stack.back();
    stack.pop_back();
    if (SameShapes(v, x, y)) continue;
    if (!x.IsTuple()) return false;
    if (x.tuple_size() == 0) continue;
    if (!y.IsTuple() || x.tuple_size() > y.tuple_size()) return false;
    // Tuples may share elements, which makes this traversal longer than the shapes.
    if (--v.search_budget < 0) return true;
    for (int64_t n = 0; n < x.tuple_size(); ++n) stack.push_back({x.element(n), y.element(n)});
  }
  return true;
}

// Returns true if `bound` is a prefix of the parameters of `c`.
bool BindsPrefixOfParameters(VerifierContext& v, Shape bound, Computation c) {
  if (bound.tuple_size() > c.parameter_count()) return false;
  for (int64_t n = 0; n < bound.tuple_size(); ++n) {
    if (!IsPrefix(v, bound.element(n), c.parameter(n).shape())) return false;
  }
  return true;
}

// Traces the state that an async-update or async-done takes back to its possible producers.
class Trace {
 public:
  explicit Trace(VerifierContext& v) : v_(v) {}

  // Finds all producers of the first operand of `consumer`. Returns false if the search was abandoned, or reached
  // invalid instructions.
  bool Run(Instruction consumer, std::vector<InstructionId>* producers) {
    producers->clear();
    const Instruction operand = consumer.operand(0);
    if (IsProducer(operand)) {
      producers->push_back(operand.id());
      return true;
    }
    visited_.clear();
    stack_.clear();
    bool sound = true;
    Push(operand, {});
    while (!stack_.empty()) {
      if (--v_.search_budget < 0) return false;
      State state = std::move(stack_.back());
      stack_.pop_back();
      const Instruction i = v_.module.instruction(state.id);
      if (IsProducer(i)) {
        producers->push_back(i.id());
      } else if (v_.is_invalid(i)) {
        sound = false;
      } else {
        Step(i, std::move(state.path));
      }
    }
    return sound;
  }

 private:
  // Indices below the value of the instruction, outermost last.
  using Path = absl::InlinedVector<int64_t, 4>;
  struct State {
    InstructionId id;
    Path path;
  };

  void Push(Instruction i, Path path) {
    const uint64_t hash = HashBytes(path.data(), path.size() * sizeof(int64_t));
    if (visited_.insert({i.id().value, hash}).second) stack_.push_back({i.id(), std::move(path)});
  }

  void Step(Instruction i, Path path) {
    using Rule = void (Trace::*)(Instruction, Path);
    static constexpr OpcodeRow<Rule> kRows[] = {
        {Opcode::kGetTupleElement, &Trace::StepElement},
        {Opcode::kTuple, &Trace::StepTuple},
        {Opcode::kOptimizationBarrier, &Trace::StepOn},
        {Opcode::kCopy, &Trace::StepOn},
        {Opcode::kAddDependency, &Trace::StepOn},
        {Opcode::kCustomCall, &Trace::StepCustomCall},
        {Opcode::kWhile, &Trace::StepLoop},
        {Opcode::kParameter, &Trace::StepParameter},
    };
    static constexpr auto kRules = MakeOpcodeHandlers<Rule>(kRows);
    if (const Rule rule = kRules[static_cast<size_t>(i.opcode())]; rule != nullptr) (this->*rule)(i, std::move(path));
  }

  void StepElement(Instruction i, Path path) {
    path.push_back(i.int_attr(Attr::kIndex));
    Push(i.operand(0), std::move(path));
  }

  void StepTuple(Instruction i, Path path) {
    if (path.empty()) {
      // A state decomposed and rebuilt.
      for (Instruction operand : i.operands()) Push(operand, {});
      return;
    }
    const int64_t index = path.back();
    path.pop_back();
    if (index >= 0 && index < i.operand_count()) Push(i.operand(index), std::move(path));
  }

  void StepOn(Instruction i, Path path) { Push(i.operand(0), std::move(path)); }

  void StepCustomCall(Instruction i, Path path) {
    if (i.operand_count() == 1) StepOn(i, std::move(path));
  }

  void StepLoop(Instruction i, Path path) {
    Push(i.computation_attr(Attr::kBody).root(), path);
    Push(i.operand(0), std::move(path));
  }

  // The state of a loop body: the loop's initial value, or the body's result.
  void StepParameter(Instruction i, Path path) {
    const Callers& callers = v_.callers(i.parent());
    if (callers.loops != 0) Push(v_.module.instruction(callers.loop), std::move(path));
  }

  VerifierContext& v_;
  std::vector<State> stack_;
  absl::flat_hash_set<std::pair<uint32_t, uint64_t>> visited_;
};

class ChainCheck {
 public:
  explicit ChainCheck(VerifierContext& v) : v_(v), trace_(v) {}

  void Run() {
    slots_.assign(v_.module.instruction_id_bound(), 0);
    facts_.resize(v_.async_ops.size());
    for (size_t n = 0; n < facts_.size(); ++n) slots_[v_.async_ops[n].value] = static_cast<uint32_t>(n);
    for (InstructionId id : v_.async_ops) CollectProducers(v_.module.instruction(id));
    for (InstructionId id : v_.async_ops) {
      const Instruction i = v_.module.instruction(id);
      if (IsConsumer(i)) CheckConsumer(i);
      if (IsProducer(i)) CheckConsumed(i);
    }
    CheckComputations();
  }

 private:
  struct Facts {
    InstructionId producer;  // the first found; invalid if there is none
    Computation wrapped;     // the computation of the chain, computed on demand
    bool given_up = false;
    bool consumed = false;
  };

  Facts& FactsOf(Instruction i) { return facts_[slots_[i.id().value]]; }
  bool IsKnown(InstructionId id) const {
    const uint32_t slot = slots_[id.value];
    return slot < v_.async_ops.size() && v_.async_ops[slot] == id;
  }

  void CollectProducers(Instruction i) {
    if (!IsConsumer(i)) return;
    Facts& facts = FactsOf(i);
    facts.given_up = !trace_.Run(i, &producers_);
    for (InstructionId id : producers_) {
      // An invalid producer is not in the list.
      if (!IsKnown(id)) {
        facts.given_up = true;
        continue;
      }
      if (!facts.producer.valid()) facts.producer = id;
      facts_[slots_[id.value]].consumed = true;
    }
  }

  // Returns the computation of the chain of `i`: its own, or that of its predecessor.
  Computation Wrapped(Instruction i) {
    Facts& facts = FactsOf(i);
    if (facts.wrapped.valid()) return facts.wrapped;
    Instruction at = i;
    Computation found;
    for (size_t steps = 0; steps <= facts_.size() && !found.valid(); ++steps) {
      found = FactsOf(at).wrapped.valid() ? FactsOf(at).wrapped : at.computation_attr(Attr::kCalls);
      const InstructionId producer = FactsOf(at).producer;
      if (!producer.valid() || --v_.search_budget < 0) break;
      at = v_.module.instruction(producer);
    }
    facts.wrapped = found;
    return found;
  }

  void CheckConsumer(Instruction i) {
    const Facts& facts = FactsOf(i);
    if (!facts.producer.valid()) {
      if (!facts.given_up) v_.Report(i, kAsyncKind, "does not continue an async-start");
      return;
    }
    const Instruction producer = v_.module.instruction(facts.producer);
    const Computation wrapped = Wrapped(i);
    if (!wrapped.valid()) return;
    const Shape state = producer.shape();
    if (!IsState(state)) return;  // reported there
    if (i.opcode() == Opcode::kAsyncUpdate) {
      CheckUpdate(i, wrapped);
    } else {
      CheckDone(i, state, wrapped);
    }
  }

  void CheckUpdate(Instruction i, Computation wrapped) {
    const Shape after = i.shape();
    if (!IsState(after)) return;
    if (!BindsPrefixOfParameters(v_, after.element(0), wrapped)) {
      v_.Report(i, kAsyncKind,
                StrCat("binds ", ShapeText(after.element(0)), ", which is not a prefix of the parameters of `",
                       wrapped.name(), "`"));
      return;
    }
    if (!IsPrefix(v_, after.element(1), wrapped.root().shape())) {
      v_.Report(i, kAsyncKind,
                StrCat("has result ", ShapeText(after.element(1)), "; `", wrapped.name(), "` returns ",
                       ShapeText(wrapped.root().shape())));
    }
  }

  void CheckDone(Instruction i, Shape state, Computation wrapped) {
    const Shape result = wrapped.root().shape();
    if (!SameShapes(v_, i.shape(), result)) {
      v_.Report(
          i, kAsyncKind,
          StrCat("is ", ShapeText(i.shape()), "; computation `", wrapped.name(), "` returns ", ShapeText(result)));
    }
    // The bound operands match; the member that bound them reports otherwise.
    if (state.element(0).tuple_size() >= wrapped.parameter_count()) return;
    v_.Report(i, kAsyncKind,
              StrCat("ends an async chain that has bound ", state.element(0).tuple_size(), " of the ",
                     Counted(wrapped.parameter_count(), "parameter"), " of `", wrapped.name(), "`"));
  }

  // Checks that a state goes to an async-update or async-done, or around a loop.
  void CheckConsumed(Instruction i) {
    int64_t direct = 0;
    for (const auto use : i.uses()) direct += IsConsumer(use.user) && use.operand_index == 0;
    if (direct > 1) v_.Report(i, kAsyncKind, StrCat("has ", direct, " continuations; expected one"));
    if (FactsOf(i).consumed || Escapes(i)) return;
    v_.Report(i, kAsyncKind,
              i.opcode() == Opcode::kAsyncStart ? "has no async-done" : "has no async-update or async-done");
  }

  // Returns true if the state reaches a loop, or the root of a called computation, where it is continued elsewhere.
  bool Escapes(Instruction start) {
    absl::flat_hash_set<uint32_t> visited;
    std::vector<InstructionId> stack = {start.id()};
    while (!stack.empty()) {
      if (--v_.search_budget < 0) return true;
      const Instruction i = v_.module.instruction(stack.back());
      stack.pop_back();
      if (i.is_root() && v_.callers(i.parent()).count != 0) return true;
      for (const auto use : i.uses()) {
        const Opcode opcode = use.user.opcode();
        // A consumer outside of the list was skipped because of another error.
        if (IsConsumer(use.user)) return true;
        if (CallsSequentialCode(opcode)) return true;
        const bool forwards =
            HasTrait(opcode, kForwards) || HasTrait(opcode, kIdentity) || opcode == Opcode::kCustomCall;
        if (forwards && visited.insert(use.user.id().value).second) stack.push_back(use.user.id());
      }
    }
    return false;
  }

  // Checks that a chain on the main thread runs one instruction, unless it is a group of collectives or only decomposes
  // tuples.
  void CheckComputations() {
    for (uint32_t id = 0; id < v_.module.computation_id_bound(); ++id) {
      const Computation c = v_.module.computation(ComputationId(id));
      const Callers& callers = v_.callers(c);
      if (c.record().erased || callers.async_starts == 0 || c.execution_thread() != "main") continue;
      const Instruction start = v_.module.instruction(callers.async_start);
      if (callers.async_starts == 1 && FrontendAttribute(start, "_collectives_group")) continue;
      Instruction other;
      bool picks = true;
      for (Instruction i : c.instructions()) {
        if (i == c.root() || i.opcode() == Opcode::kParameter) continue;
        if (!other.valid()) other = i;
        picks = picks && i.opcode() == Opcode::kGetTupleElement;
      }
      if (!other.valid() || picks) continue;
      v_.Report(other, kAsyncKind,
                StrCat("is in `", c.name(), "`, which `", start.name(),
                       "` runs asynchronously; expected only parameters besides the root"));
    }
  }

  VerifierContext& v_;
  Trace trace_;
  std::vector<uint32_t> slots_;  // by instruction: index in async_ops, if it is in the list
  std::vector<Facts> facts_;     // by index in async_ops
  std::vector<InstructionId> producers_;
};

}  // namespace

void CheckAsyncOp(VerifierContext& v, Instruction i) {
  v.async_ops.push_back(i.id());
  if (i.opcode() == Opcode::kAsyncStart) CheckAsyncStartAliasing(v, i);
  if (i.opcode() == Opcode::kAsyncUpdate) CheckAsyncUpdateAliasing(v, i);
}

void CheckAsyncChains(VerifierContext& v) {
  if (!v.async_ops.empty()) ChainCheck(v).Run();
}

}  // namespace hlokit::verify_internal
