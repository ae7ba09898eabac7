// SPDX-License-Identifier: Apache-2.0
// Splits collectives into start and done, so that other work overlaps with them.
#include <vector>

#include "ir/builder/builder.h"
#include "ir/core/str_cat.h"
#include "ir/graph/traversal.h"
#include "passes/analysis/call_graph.h"
#include "passes/collective/async_pair.h"
#include "passes/collective/collectives.h"
#include "passes/core/pass_row.h"

namespace hlokit {
namespace {

struct Pair {
  Opcode collective, start, done;
};
constexpr Pair kPairs[] = {
    {Opcode::kAllReduce, Opcode::kAllReduceStart, Opcode::kAllReduceDone},
    {Opcode::kAllGather, Opcode::kAllGatherStart, Opcode::kAllGatherDone},
    {Opcode::kCollectivePermute, Opcode::kCollectivePermuteStart, Opcode::kCollectivePermuteDone},
    {Opcode::kReduceScatter, Opcode::kAsyncStart, Opcode::kAsyncDone},
    {Opcode::kAllToAll, Opcode::kAsyncStart, Opcode::kAsyncDone},
    {Opcode::kCollectiveBroadcast, Opcode::kAsyncStart, Opcode::kAsyncDone},
    {Opcode::kCollectiveReduce, Opcode::kAsyncStart, Opcode::kAsyncDone},
};

const Pair* PairOf(Opcode opcode) {
  for (const Pair& pair : kPairs) {
    if (pair.collective == opcode) return &pair;
  }
  return nullptr;
}

// Returns a computation of only the collective, whose operands are its parameters.
absl::StatusOr<ComputationId> Wrap(Module& module, InstructionId id) {
  const Instruction i = module.instruction(id);
  const ComputationId body = module.AddComputation(module.UniqueComputationName(StrCat("async_", i.name())));
  module.SetExecutionThread(body, module.record(i.record().parent).execution_thread);
  Builder builder(&module, body);
  std::vector<InstructionId> parameters;
  std::vector<InstructionId> operands;
  for (Instruction operand : i.operands()) operands.push_back(operand.id());
  for (size_t k = 0; k < operands.size(); ++k) {
    const Builder::Result parameter =
        builder.Parameter(static_cast<int64_t>(k), module.instruction(operands[k]).shape(), StrCat("param_", k));
    if (!parameter.ok()) return parameter.status();
    parameters.push_back(*parameter);
  }
  const Instruction source = module.instruction(id);
  const std::vector<AttrValue> attrs(source.attrs().begin(), source.attrs().end());
  builder.WithName(source.name());
  const Builder::Result inner = builder.Add(source.opcode(), parameters, attrs, source.shape());
  if (!inner.ok()) return inner.status();
  module.SetMetadata(*inner, module.record(id).metadata);
  builder.SetRoot(*inner);
  return body;
}

absl::Status SplitIntoPair(Module& module, InstructionId id, const Pair& pair) {
  const Instruction i = module.instruction(id);
  const ComputationId parent = i.record().parent;
  const Shape result = i.shape();
  std::vector<InstructionId> operands;
  std::vector<Shape> shapes;
  for (Instruction operand : i.operands()) {
    operands.push_back(operand.id());
    shapes.push_back(operand.shape());
  }
  ShapeTable& table = module.context().shapes;
  std::vector<AttrValue> attrs(i.attrs().begin(), i.attrs().end());
  Shape started = result;
  if (pair.start == Opcode::kAsyncStart) {
    const absl::StatusOr<ComputationId> body = Wrap(module, id);
    if (!body.ok()) return body.status();
    attrs = {{Attr::kCalls, body->value}};
    const Shape parts[] = {table.Tuple(shapes), result, table.Scalar(ElementType::kU32)};
    started = table.Tuple(parts);
  } else if (pair.start != Opcode::kAllReduceStart) {
    std::vector<Shape> parts = {shapes.size() == 1 ? shapes[0] : table.Tuple(shapes), result};
    if (pair.start == Opcode::kCollectivePermuteStart) {
      // Contexts of the transfer, one for each side.
      parts.insert(parts.end(), 2, table.Scalar(ElementType::kU32));
    }
    started = table.Tuple(parts);
  }
  Builder builder(&module, parent, module.record(id).next);
  const MetadataScope scope(&builder, module.record(id).metadata);
  builder.WithName(StrCat(module.instruction(id).name(), "-start"));
  const Builder::Result start = builder.Add(pair.start, operands, attrs, started);
  if (!start.ok()) return start.status();
  builder.WithName(StrCat(module.instruction(id).name(), "-done"));
  const Builder::Result done = builder.Add(pair.done, {*start}, {}, result);
  if (!done.ok()) return done.status();
  module.ReplaceAllUses(id, *done);
  module.Erase(id);
  return absl::OkStatus();
}

}  // namespace

absl::Status WrapInAsyncPair(Module& module, InstructionId id) {
  return SplitIntoPair(module, id, {module.record(id).opcode, Opcode::kAsyncStart, Opcode::kAsyncDone});
}

absl::StatusOr<int64_t> MakeCollectivesAsync(Module& module, bool reduce_scatters) {
  if (module.header().is_scheduled || !module.entry().valid()) return 0;
  int64_t made = 0;
  const CallGraph calls(module);
  const ComputationRoles roles = RolesOf(module);
  for (Computation c : module.computations()) {
    if (!calls.IsSequential(c) || roles.async[c.id().value] != 0) continue;
    std::vector<InstructionId> work;
    for (Instruction i : c.instructions()) {
      if (i.opcode() == Opcode::kReduceScatter && !reduce_scatters) continue;
      if (PairOf(i.opcode()) == nullptr || i.operand_count() == 0 || i.has(Attr::kSharding)) continue;
      if (i.has_control_edges() || i.has(Attr::kPermuteSliceSizes)) {
        continue;
      }
      work.push_back(i.id());
    }
    for (InstructionId id : work) {
      if (absl::Status status = SplitIntoPair(module, id, *PairOf(module.record(id).opcode)); !status.ok())
        return status;
      ++made;
    }
  }
  return made;
}

namespace {

class AsyncCollectiveCreator : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = MakeCollectivesAsync(module, options().Bool("reduce-scatters"));
    if (!count.ok()) return count.status();
    if (*count > 0) Count("collectives changed", *count);
    return *count > 0;
  }
};

}  // namespace

HLOKIT_PASS(AsyncCollectiveCreator) {
  return {
      .name = "async-collective-creator",
      .category = "collective",
      .summary = "split collectives into start and done",
      .doc =
          "all-reduce, all-gather and collective-permute become their own start and done opcodes, the others an "
          "async-start of a computation and an async-done. `schedule` overlaps other work with them.",
      .example = R"(HloModule axes

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[128]{0} parameter(0)
  rows = f32[128]{0} all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=sum
  ROOT all = f32[128]{0} all-reduce(rows), replica_groups={{0,2},{1,3}}, to_apply=sum
}
)",
      .options = {{.name = "reduce-scatters",
                   .type = OptionInfo::Type::kBool,
                   .default_text = "true",
                   .doc =
                       "reduce-scatters too; those of a TPU run on its core, which adds, so that `tpu` leaves them"}},
      .preconditions = kNoSchedule,
      .create = MakePass<AsyncCollectiveCreator>};
}

}  // namespace hlokit
