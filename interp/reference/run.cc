// SPDX-License-Identifier: Apache-2.0
#include "interp/reference/run.h"

#include <string>
#include <utility>

#include "interp/reference/virtual_machine.h"
#include "ir/core/str_cat.h"
#include "ir/graph/name_range.h"
#include "ir/graph/side_effects.h"
#include "ir/graph/traversal.h"
#include "ir/inference/applied_types.h"
#include "ir/inference/shape_inference.h"

namespace hlokit::reference {
namespace {

constexpr size_t kNoPosition = ~size_t{0};

// Reports an error at an instruction.
bool Refuse(Instruction at, DiagnosticKind kind, std::string message, DiagnosticSink* sink, std::string hint = "") {
  sink->Error(kind, NameRange(at), std::move(message), std::move(hint));
  return false;
}

class Preparation {
 public:
  Preparation(const Module& module, const interp::EvaluatorOptions& options, DiagnosticSink* sink,
              PreparedProgram* program)
      : module_(module), options_(options), sink_(sink), program_(*program), effects_(module) {
    program_.module = &module;
    program_.positions.assign(module.instruction_id_bound(), kNoPosition);
  }

  bool Prepare(Computation entry) {
    for (ComputationId id : ReachableComputations(module_, {entry.id()})) {
      const Computation computation = module_.computation(id);
      if (!computation.root().valid()) {
        sink_->Error(DiagnosticKind::kUnsupported, {}, StrCat("computation ", computation.name(), " has no root"));
        return false;
      }
      if (!Order(computation, &program_.schedules[id.value])) return false;
    }
    return true;
  }

 private:
  // Computes the live instructions and their order: a traversal of operands and control predecessors from each
  // instruction in turn.
  bool Order(Computation computation, Schedule* schedule) {
    for (int64_t p = 0; p < computation.parameter_count(); ++p) {
      schedule->parameter_begins.push_back(schedule->parameter_leaves.size());
      for (Shape leaf : LeafShapes(computation.parameter(p).shape())) schedule->parameter_leaves.push_back(leaf);
    }
    schedule->parameter_begins.push_back(schedule->parameter_leaves.size());
    std::vector<Instruction> pending = {computation.root()};
    for (Instruction i : computation.instructions()) {
      if (effects_.Of(i)) pending.push_back(i);
    }
    absl::flat_hash_set<uint32_t> live;
    while (!pending.empty()) {
      const Instruction i = pending.back();
      pending.pop_back();
      if (!live.insert(i.id().value).second) continue;
      for (Instruction needed : NeededBy(i)) pending.push_back(needed);
    }
    absl::flat_hash_set<uint32_t> open;
    for (Instruction root : computation.instructions()) {
      if (!live.contains(root.id().value)) continue;
      if (program_.positions[root.id().value] != kNoPosition) continue;
      struct Visit {
        Instruction at;
        std::vector<Instruction> needed;
        size_t next = 0;
      };
      std::vector<Visit> stack = {{root, NeededBy(root)}};
      while (!stack.empty()) {
        const Instruction at = stack.back().at;
        if (stack.back().next < stack.back().needed.size()) {
          open.insert(at.id().value);
          const Instruction next = stack.back().needed[stack.back().next++];
          if (program_.positions[next.id().value] != kNoPosition) continue;
          if (open.contains(next.id().value)) {
            return Refuse(next, DiagnosticKind::kCyclicOperands, "this instruction depends on its own result", sink_);
          }
          stack.push_back({next, NeededBy(next)});
        } else {
          stack.pop_back();
          if (!Check(at)) return false;
          program_.positions[at.id().value] = schedule->order.size();
          schedule->order.push_back(at);
        }
      }
    }
    // In reverse order, the first use found is the last one.
    schedule->last_uses.resize(schedule->order.size());
    absl::flat_hash_set<uint32_t> used = {computation.root().id().value};
    for (size_t i = schedule->order.size(); i-- > 0;) {
      if (!used.contains(schedule->order[i].id().value)) schedule->last_uses[i].push_back(i);
      for (Instruction operand : schedule->order[i].operands()) {
        if (!used.insert(operand.id().value).second) continue;
        schedule->last_uses[i].push_back(program_.positions[operand.id().value]);
      }
    }
    return true;
  }

  static std::vector<Instruction> NeededBy(Instruction i) {
    std::vector<Instruction> needed;
    for (Instruction operand : i.operands()) needed.push_back(operand);
    if (i.has(Attr::kControlPredecessors)) {
      for (Instruction p : i.control_predecessors()) needed.push_back(p);
    }
    return needed;
  }

  // Returns true if the instruction can be evaluated.
  bool Check(Instruction at) {
    constexpr int64_t kMaxTotalLeaves = int64_t{1} << 24;
    const auto refuse = [&](std::string message) {
      return Refuse(at, DiagnosticKind::kUnsupported, std::move(message), sink_);
    };
    leaves_ += at.shape().leaf_count();
    if (at.shape().leaf_count() > kMaxTotalLeaves || leaves_ > kMaxTotalLeaves) {
      return refuse("the tuples of this program have too many leaves");
    }
    if (EvaluateOf(at.opcode()) == nullptr) return refuse(StrCat("cannot evaluate ", at.opcode_text()));
    if (at.shape().has_unbounded_dims()) {
      return refuse(StrCat("the shape ", ToString(at.shape(), /*with_layout=*/false),
                           " has an unbounded dimension: give the program sizes"));
    }
    std::vector<Shape> scratch;
    const InferenceRequest request = RequestFor(at, &scratch);
    const std::optional<AppliedTypes> applied = AppliedTypesOf(at);
    if ((applied && HasOtherTypes(at, *applied)) || !CheckShape(request, /*mixed_precision=*/false).ok()) {
      if (const absl::Status status = CheckShape(request, /*mixed_precision=*/true); !status.ok()) {
        return refuse(std::string(status.message()));
      }
      program_.mixed.insert(at.id().value);
    }
    return at.opcode() != Opcode::kConstant || SetConstant(at);
  }

  // Sets the leaves of the literal from left to right.
  bool SetConstant(Instruction at) {
    SlotValue& value = program_.constants[at.id().value];
    std::vector<LiteralId> stack = {at.literal_id()};
    while (!stack.empty()) {
      const LiteralId id = stack.back();
      stack.pop_back();
      const LiteralRecord& literal = module_.context().literals[id];
      if (literal.shape.IsTuple()) {
        if (literal.elements == nullptr && literal.shape.tuple_size() != 0) {
          return Refuse(at, DiagnosticKind::kUnsupported, "the elements of this tuple constant are elided", sink_);
        }
        for (int64_t i = literal.shape.tuple_size(); i-- > 0;) stack.push_back(literal.elements[i]);
        continue;
      }
      const std::byte* data = literal.data;
      if (literal.elided && literal.shape.IsArray()) {
        if (!options_.fill_elided) {
          return Refuse(at, DiagnosticKind::kUnsupported,
                        StrCat("the value of constant ", at.name(), " is elided in the text"), sink_,
                        "--fill-elided=zeros, iota or random gives it one");
        }
        const int64_t bytes = LiteralBytes(literal.shape);
        if (bytes < 0 || bytes > options_.limits.max_bytes) {
          return Refuse(at, DiagnosticKind::kTooLarge, "this constant needs more memory than allowed", sink_);
        }
        // Each constant gets different random values.
        program_.filled.push_back(
            std::make_unique<Literal>(FillElided(literal.shape, *options_.fill_elided, options_.seed + id.value)));
        data = program_.filled.back()->data();
      }
      value.push_back(std::make_shared<Array>(literal.shape, data));
    }
    return true;
  }

  const Module& module_;
  const interp::EvaluatorOptions& options_;
  DiagnosticSink* sink_;
  PreparedProgram& program_;
  const SideEffects effects_;
  int64_t leaves_ = 0;
};

}  // namespace

bool Schedule::Takes(const SlotValue& leaves) const {
  if (leaves.size() != parameter_leaves.size()) return false;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Shape shape = parameter_leaves[i];
    if (leaves[i] == nullptr || leaves[i]->type() != shape.element_type()) return false;
    if (shape.IsArray() && leaves[i]->dims() != shape.dims()) return false;
  }
  return true;
}

bool PrepareProgram(const Module& module, const interp::EvaluatorOptions& options, DiagnosticSink* sink,
                    PreparedProgram* program) {
  return Preparation(module, options, sink, program).Prepare(module.entry());
}

std::pair<size_t, size_t> PreparedProgram::ElementLeaves(Shape tuple, int64_t index) {
  std::vector<size_t>& begins = element_begins[tuple.record()];
  if (begins.empty()) {
    begins.push_back(0);
    for (Shape element : tuple.elements()) begins.push_back(begins.back() + LeafShapes(element).size());
  }
  return {begins[static_cast<size_t>(index)], begins[static_cast<size_t>(index) + 1]};
}

std::string Run::DeviceName(int64_t number) const {
  return StrCat("replica ", number / options.num_partitions, ", partition ", number % options.num_partitions);
}

void Run::Fail(std::string message) {
  if (failed_) return;
  failed_ = true;
  error_ = std::move(message);
}

bool Run::CountStep() {
  if (++statistics.steps > options.limits.max_steps) {
    Fail(StrCat("the run exceeded the limit of ", options.limits.max_steps, " instructions (--max-steps)"));
  }
  return !failed_ && Tick();
}

bool Run::CheckTime() {
  constexpr double kSecondsPerProgress = 0.1;
  const double now = Seconds();
  if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed)) Fail("interrupted");
  if (options.limits.IsOutOfTime(begin_)) Fail(options.limits.OutOfTimeMessage("the run"));
  if (options.progress && now >= next_progress_) {
    options.progress({statistics.steps, statistics.loop_iterations, memory.used, now});
    next_progress_ = now + kSecondsPerProgress;
  }
  return !failed_;
}

std::shared_ptr<Array> Run::Allocate(Shape shape) {
  std::shared_ptr<Array> array = Array::Zeros(shape, &memory);
  if (array == nullptr) {
    const int64_t limit = options.limits.max_bytes;
    Fail(StrCat("out of memory: cannot allocate ", LiteralBytes(shape), " bytes; ", options.limits.BytesText(),
                ", of which values take ", memory.used, " and arguments ", limit - memory.max));
  }
  return array;
}

std::vector<std::shared_ptr<Array>> Run::AllocateLeaves(Shape shape) {
  std::vector<std::shared_ptr<Array>> arrays;
  for (Shape leaf : LeafShapes(shape)) {
    arrays.push_back(Allocate(leaf));
    if (failed_) return {};
  }
  return arrays;
}

Leaf Run::ElementOf(const Array& array, int64_t i) {
  const std::shared_ptr<Array> scalar = Allocate(program.module->context().shapes.Scalar(array.type()));
  if (scalar != nullptr) scalar->CopyElement(0, array, i);
  return scalar;
}

std::optional<SlotValue> Run::Apply(Computation computation, SlotValue arguments, SlotValue* root_operands) {
  for (size_t k = 0; computation.valid() && k < arguments.size(); ++k) {
    if (static_cast<int64_t>(k) >= computation.parameter_count() || arguments[k] == nullptr) break;
    const Shape shape = computation.parameter(static_cast<int64_t>(k)).shape();
    if (!shape.IsArray() || !IsFloat(shape.element_type()) || !IsFloat(arguments[k]->type())) continue;
    arguments[k] = Converted(*this, arguments[k], shape.element_type());
    if (arguments[k] == nullptr) return std::nullopt;
  }
  // Each level is a virtual machine on the C++ stack, so their number is bounded.
  constexpr int kMaxDepth = 50;
  if (depth_ == kMaxDepth) Fail(StrCat("computations applied to elements are nested deeper than ", kMaxDepth));
  if (failed_) return std::nullopt;
  ++depth_;
  VirtualMachine machine(*this, computation, std::move(arguments), /*applied=*/true);
  if (!failed_) machine.Advance();
  --depth_;
  if (!failed_ && machine.result().empty()) Fail("the computation that is applied to elements gives no array");
  if (failed_) return std::nullopt;
  if (root_operands != nullptr) *root_operands = machine.root_operands();
  return machine.result();
}

}  // namespace hlokit::reference
