// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/dynamic/dynamic_padder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ir/core/str_cat.h"
#include "passes/core/pass_row.h"
#include "passes/simplify/dynamic/padder.h"

namespace hlokit {
namespace {

bool IsDynamic(Instruction i) { return i.shape().has_dynamic_dims(); }

// Returns the instructions that set the final sizes of the program's results: the root, or the elements of its tuple.
// They are dynamic before and after.
std::vector<InstructionId> ResultsOf(Computation entry) {
  std::vector<InstructionId> results;
  const auto add = [&](Instruction i) {
    while (i.opcode() == Opcode::kSetDimensionSize && IsDynamic(i)) {
      results.push_back(i.id());
      i = i.operand(0);
    }
  };
  const Instruction root = entry.root();
  add(root);
  if (root.opcode() != Opcode::kTuple) return results;
  results.push_back(root.id());
  for (Instruction element : root.operands()) add(element);
  return results;
}

// Returns true for a dynamic argument that is only used to read its sizes and to make its dimensions static. It stays
// dynamic.
bool IsArgument(Instruction i) {
  if (i.opcode() == Opcode::kGetTupleElement) i = i.operand(0);
  return i.opcode() == Opcode::kParameter;
}

bool HasWork(Computation c) {
  for (Instruction i : c.instructions()) {
    if (IsSizeBoundary(i) || (!c.is_entry() && IsDynamic(i))) return true;
  }
  if (!c.is_entry()) return false;
  const std::vector<InstructionId> results = ResultsOf(c);
  const auto is_result = [&](Instruction i) {
    return std::find(results.begin(), results.end(), i.id()) != results.end();
  };
  for (Instruction i : c.instructions()) {
    if (!IsDynamic(i)) continue;
    const bool result = is_result(i);
    if (!result && !IsArgument(i) && !UnsetsDimension(i)) return true;
    for (const auto use : i.uses()) {
      const Instruction user = use.user;
      const bool reads = !result && (user.opcode() == Opcode::kGetDimensionSize || UnsetsDimension(user) ||
                                     (user.opcode() == Opcode::kGetTupleElement && i.shape().IsTuple()));
      // Other results may have the size set at the end; an argument may be a result as is.
      const bool returned = is_result(user) && (result || user.opcode() == Opcode::kTuple);
      if (!reads && !returned) return true;
    }
  }
  return false;
}

// Returns the computations with a caller that is not a call, loop or conditional.
std::vector<uint8_t> UsedOtherwise(const Module& module) {
  std::vector<uint8_t> used(module.computation_id_bound(), 0);
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (CallsSequentialCode(i.opcode())) continue;
      i.ForEachCallee([&](Computation callee) { used[callee.id().value] = 1; });
    }
  }
  return used;
}

// Returns the shapes that the roots of computations have for their callers, by computation: a branch may return a
// static array where another one returns a dynamic one. An error names a computation that has two.
absl::StatusOr<std::vector<Shape>> ResultShapes(const Module& module) {
  std::vector<Shape> shapes(module.computation_id_bound());
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (!CallsSequentialCode(i.opcode())) continue;
      const Computation condition = i.opcode() == Opcode::kWhile ? i.computation_attr(Attr::kCondition) : Computation();
      bool agree = true;
      i.ForEachCallee([&](Computation callee) {
        if (callee == condition) return;
        Shape& shape = shapes[callee.id().value];
        agree &= !shape.valid() || Compatible(shape, i.shape());
        shape = i.shape();
      });
      if (!agree) {
        return absl::UnimplementedError(
            StrCat(i.opcode_text(), " %", i.name(), ": another caller has a result with other dynamic dimensions"));
      }
    }
  }
  for (Computation c : module.computations()) {
    if (!shapes[c.id().value].valid()) shapes[c.id().value] = c.root().shape();
  }
  return shapes;
}

}  // namespace

bool HasDynamicArrays(const Module& module) {
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (IsDynamic(i) || IsSizeBoundary(i)) return true;
    }
  }
  return false;
}

absl::StatusOr<bool> DynamicPadder::Run(Module& module) {
  if (!HasDynamicArrays(module)) return false;
  const absl::StatusOr<std::vector<Shape>> results = ResultShapes(module);
  if (!results.ok()) return results.status();
  std::vector<ComputationId> open;
  for (Computation c : module.computations()) {
    const bool returns = !c.is_entry() && (*results)[c.id().value].has_dynamic_dims();
    if (returns || HasWork(c)) open.push_back(c.id());
  }
  if (open.empty()) return false;
  const std::vector<uint8_t> used_otherwise = UsedOtherwise(module);
  const StaticShapes static_shapes(&module.context().shapes);
  Module padded = module.Clone();  // discarded on errors
  int64_t settings = 0, masks = 0, passed = 0;
  for (ComputationId id : open) {
    if (used_otherwise[id.value] != 0) {
      return absl::UnimplementedError(StrCat("computation %", module.computation(id).name(),
                                             ": it has dynamic dimensions and is not called by a call, loop or "
                                             "conditional alone"));
    }
    Padder padder(&padded, &module, &static_shapes, id, (*results)[id.value]);
    const absl::Status status = padder.Run();
    if (!status.ok()) return status;
    settings += padder.set_dimension_sizes();
    masks += padder.masks();
    passed += padder.passed();
  }
  module = std::move(padded);
  Count("dynamic sizes made scalars", settings);
  Count("arrays masked", masks);
  Count("calls given sizes", passed);
  return true;
}

HLOKIT_PASS(DynamicPadder) {
  return {
      .name = "dynamic-padder",
      .category = "simplify",
      .summary = "make arrays with dynamic dimensions static",
      .doc =
          "They get the size of their bound, and the size set by set-dimension-size becomes a separate scalar, in "
          "calls, loops and conditionals too. Operations that combine, sort or index elements ignore those beyond the "
          "size, by a select, an additional operand of a sort, or clamped indices; concatenation, padding, reversal "
          "and reshapes keep valid elements contiguous. XLA's custom calls SliceToDynamic and PadToStatic are "
          "replaced. Arguments and results of the program keep their dynamic dimensions. A module in which another "
          "operation, for example a fusion or the kernel of a convolution, has one does not change, and the error "
          "names the operation. The interpreters compute what this pass says.",
      .example = R"(sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  p = f32[8] parameter(0)
  n = s32[] parameter(1)
  d = f32[<=8] set-dimension-size(p, n), dimensions={0}, metadata={op_name="f/resize"}
  x = f32[<=8] exponential(d), metadata={op_name="f/exp"}
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=sum, metadata={op_name="f/sum"}
})",
      .create = MakePass<DynamicPadder>};
}

}  // namespace hlokit
