// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/loops/while_thunk.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "interp/compiled/loops/loop_builder.h"
#include "interp/compiled/loops/loop_params.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/machine/run_context.h"
#include "ir/core/str_cat.h"
#include "ir/graph/traversal.h"

namespace hlokit::interp::compiled {
namespace {

struct WhileLoopParams : ThunkParams {
  std::shared_ptr<const LoadedCode> code;
  std::vector<ElementOp> functions;
  std::vector<const void*> function_pointers;
  std::vector<const std::byte*> constants;  // inputs after the state
  size_t state = 0;                         // leaves
  InstructionId instruction;
};

void RunWhileLoop(const WhileLoopParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  constexpr int64_t kBetweenChecks = int64_t{1} << 13;  // iterations
  std::vector<const std::byte*> inputs(in, in + p.state);
  inputs.insert(inputs.end(), p.constants.begin(), p.constants.end());
  const std::vector<int64_t> strides(inputs.size(), 0);
  int64_t result[2] = {};  // iterations, and whether the loop ended
  const int64_t max_iterations = context.limits().max_loop_iterations;
  for (int64_t done = 0;;) {
    LoopArguments arguments = {};
    arguments.in = inputs.data();
    arguments.out = out;
    arguments.in_strides = arguments.out_strides = strides.data();
    arguments.rows = std::min(kBetweenChecks, max_iterations - done);
    arguments.columns = 1;
    arguments.scratch = reinterpret_cast<std::byte*>(result);
    arguments.call = CallElementOp;
    arguments.functions = p.function_pointers.data();
    p.code->function()(&arguments);
    done += result[0];
    context.loop_iterations += result[0];
    const bool ended = result[1] != 0;
    if (!ended && done >= max_iterations) {
      context.Fail(StrCat("a loop exceeded the limit of ", max_iterations, " iterations (--max-loop-trips)"));
    } else if (context.CountSteps(2 * result[0]) && (ended || context.CheckTime())) {
      if (ended) return;
      std::copy_n(out, p.state, inputs.begin());
      continue;
    }
    context.error_loops.push_back({p.instruction, done});
    return;
  }
}

// Collects the values of a computation of scalars.
class ScalarComputation {
 public:
  ScalarComputation(CompiledComputationBuilder& b, LoopBuilder* loop, WhileLoopParams* params)
      : b_(b), loop_(*loop), params_(*params) {}

  // Adds the constants, which are inputs. Returns false if an instruction has no place in a loop of scalars.
  bool AddConstants(Computation computation) {
    for (Instruction i : computation.instructions()) {
      if (i.opcode() != Opcode::kConstant) continue;
      if (!IsScalar(i.shape())) return false;
      const std::byte* const data = b_.program().ConstantData(i, i.literal_id());
      if (data == nullptr) return false;
      params_.constants.push_back(data);
      loop_.SetNode(i, loop_.AddInput(i.shape().element_type(), {}));
    }
    return true;
  }

  // Adds the other instructions; the first nodes are the leaves of the parameter. Returns the nodes of the root's
  // leaves, nullopt if an instruction has no place in a loop of scalars.
  std::optional<std::vector<uint16_t>> Add(Computation computation) {
    constexpr size_t kMaxNodes = 4096;
    for (InstructionId id : PostOrder(computation)) {
      const Instruction i = computation.module().instruction(id);
      if (loop_.program().nodes.size() > kMaxNodes) return std::nullopt;
      if (i.has_control_edges() || !AddInstruction(i)) return std::nullopt;
    }
    return Leaves(computation.root());
  }

 private:
  using Nodes = std::vector<uint16_t>;

  static bool IsScalar(Shape shape) { return shape.IsArray() && shape.rank() == 0 && IsLoopType(shape.element_type()); }

  Nodes Leaves(Instruction i) const {
    const auto found = tuples_.find(i.id().value);
    return found != tuples_.end() ? found->second : Nodes{loop_.NodeOf(i)};
  }

  void Set(Instruction i, Nodes nodes) {
    if (i.shape().IsTuple()) {
      tuples_[i.id().value] = std::move(nodes);
    } else {
      loop_.SetNode(i, nodes[0]);
    }
  }

  bool AddInstruction(Instruction i) {
    if (i.opcode() == Opcode::kConstant) return true;
    if (i.opcode() == Opcode::kParameter) {
      Nodes state(params_.state);
      std::iota(state.begin(), state.end(), uint16_t{0});
      Set(i, std::move(state));
      return true;
    }
    if (i.opcode() == Opcode::kTuple) {
      Nodes nodes;
      for (Instruction operand : i.operands()) {
        const Nodes leaves = Leaves(operand);
        nodes.insert(nodes.end(), leaves.begin(), leaves.end());
      }
      Set(i, std::move(nodes));
      return true;
    }
    if (i.opcode() == Opcode::kGetTupleElement) return AddElement(i);
    if (!IsScalar(i.shape())) return false;
    if (i.opcode() == Opcode::kBroadcast && IsScalar(i.operand(0).shape())) {
      loop_.SetNode(i, loop_.NodeOf(i.operand(0)));
      return true;
    }
    if (!IsLoopInstruction(i)) return false;
    loop_.Add(i);
    return true;
  }

  bool AddElement(Instruction i) {
    const Nodes all = Leaves(i.operand(0));
    const int64_t index = i.int_attr(Attr::kIndex);
    size_t begin = 0;  // after the leaves of the elements before
    for (int64_t k = 0; k < index; ++k) begin += LeafCount(i.operand(0).shape().elements()[static_cast<size_t>(k)]);
    const size_t count = LeafCount(i.shape());
    if (begin + count > all.size() || count == 0) return false;
    Set(i, Nodes(all.begin() + static_cast<int64_t>(begin), all.begin() + static_cast<int64_t>(begin + count)));
    return true;
  }

  static size_t LeafCount(Shape shape) {
    std::vector<Shape> leaves;
    AppendLeaves(shape, &leaves);
    return leaves.size();
  }

  CompiledComputationBuilder& b_;
  LoopBuilder& loop_;
  WhileLoopParams& params_;
  absl::flat_hash_map<uint32_t, Nodes> tuples_;  // by instruction id
};

bool HasAny(Computation computation, const std::function<bool(Instruction)>& is) {
  for (Instruction i : computation.instructions()) {
    if (is(i)) return true;
  }
  return false;
}

}  // namespace

PrepareResult PrepareWhileLoop(CompiledComputationBuilder& b, const std::function<bool(Instruction)>& is_observed,
                               ProgramCode* code, std::vector<LoopProgram>* programs,
                               std::vector<Instruction>* members) {
  const Instruction instruction = b.instruction();
  const Computation condition = instruction.computation_attr(Attr::kCondition);
  const Computation body = instruction.computation_attr(Attr::kBody);
  if (!condition.valid() || !body.valid() || HasAny(condition, is_observed) || HasAny(body, is_observed)) {
    return PrepareResult::Unsupported();
  }
  std::vector<Shape> leaves;
  AppendLeaves(instruction.shape(), &leaves);
  const auto is_scalar = [](Shape s) { return s.IsArray() && s.rank() == 0 && IsLoopType(s.element_type()); };
  if (leaves.empty() || !absl::c_all_of(leaves, is_scalar)) return PrepareResult::Unsupported("not only scalars");
  auto params = std::make_unique<WhileLoopParams>();
  params->instruction = instruction.id();
  params->state = leaves.size();
  LoopBuilder loop;
  for (Shape leaf : leaves) loop.AddInput(leaf.element_type(), {});
  ScalarComputation scalars(b, &loop, params.get());
  if (!scalars.AddConstants(condition) || !scalars.AddConstants(body)) return PrepareResult::Unsupported();
  const std::optional<std::vector<uint16_t>> again = scalars.Add(condition);
  if (!again || again->size() != 1) return PrepareResult::Unsupported("not only elementwise");
  LoopProgram& program = loop.program();
  // A node of its own, before those of the body.
  program.condition = loop.AddNode(LoopOp::kCopy, ElementType::kPred, {(*again)[0]});
  const std::optional<std::vector<uint16_t>> next = scalars.Add(body);
  if (!next || next->size() != leaves.size()) return PrepareResult::Unsupported("not only elementwise");
  for (size_t k = 0; k < leaves.size(); ++k) {
    if (program.nodes[(*next)[k]].type != leaves[k].element_type()) return PrepareResult::Unsupported();
  }
  program.form = LoopForm::kWhile;
  program.outputs = *next;
  WhileLoopParams* const p = params.get();
  const auto receive = [p](std::shared_ptr<const LoadedCode> loaded) {
    p->code = std::move(loaded);
    return absl::OkStatus();
  };
  if (absl::Status status = code->Request(program, 1, receive); !status.ok()) {
    return PrepareResult::Unsupported(status);
  }
  params->functions = std::move(loop.functions());
  for (const ElementOp& function : params->functions) params->function_pointers.push_back(&function);
  programs->push_back(program);
  for (Computation computation : {condition, body}) {
    for (Instruction i : computation.instructions()) members->push_back(i);
  }
  std::vector<View> views;
  b.AppendDense(instruction.operand(0), &views);
  b.Emit(kKernel<RunWhileLoop>, std::move(params), views);
  return PrepareResult::Prepared();
}

}  // namespace hlokit::interp::compiled
