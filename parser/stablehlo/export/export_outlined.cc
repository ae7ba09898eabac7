// SPDX-License-Identifier: Apache-2.0
// Computations that are regions of several operations. Each region is a copy, and copies that contain copies grow
// exponentially with their depth: beyond a limit such a computation is a function that the regions call.
#include "ir/core/saturating.h"
#include "ir/graph/traversal.h"
#include "parser/stablehlo/export/exporter.h"

namespace hlokit::stablehlo {

using mlir::OpKind;

namespace {

constexpr int64_t kMaxGrowth = 4;                // operations for each instruction
constexpr int64_t kAlwaysFits = 10'000;          // operations
constexpr int64_t kMinOutlinedInstructions = 8;  // fewer are as short as a call

}  // namespace

void Exporter::FindOutlined() {
  outlined_.assign(module_.computation_id_bound(), 0);
  std::vector<int64_t> size(module_.computation_id_bound(), 0);  // with the regions in it
  std::vector<uint32_t> uses(module_.computation_id_bound(), 0);
  int64_t limit = kAlwaysFits, total = 0;
  for (ComputationId id : ComputationPostOrder(module_)) {
    const Computation computation = module_.computation(id);
    const auto instructions = static_cast<int64_t>(computation.instruction_count());
    limit = SaturatingAdd(limit, kMaxGrowth * instructions);
    int64_t operations = instructions;
    for (Instruction i : computation.instructions()) {
      for (Computation region : RegionsOf(i)) {
        ++uses[region.id().value];
        operations = SaturatingAdd(operations, size[region.id().value]);
      }
    }
    size[id.value] = operations;
    total = SaturatingAdd(total, operations);
  }
  if (total <= limit) return;
  for (Computation c : module_.computations()) {
    const uint32_t id = c.id().value;
    outlined_[id] = uses[id] > 1 && size[id] >= kMinOutlinedInstructions ? 1 : 0;
  }
}

absl::Status Exporter::CallInRegion(Instruction instruction, Computation computation, size_t index) {
  if (absl::Status status = OpenRegion(instruction, computation, index); !status.ok()) return status;
  Values operands;
  for (int64_t i = 0; i < computation.parameter_count(); ++i) operands.push_back(Whole(computation.parameter(i)));
  const Instruction root = computation.root();
  const bool several = !options_.as_xla && IsUnpacked(root.shape());
  std::vector<mlir::NodeId> types;
  if (several) {
    for (Shape element : root.shape().elements()) types.push_back(TypeOf(element));
  } else {
    types.push_back(TypeOf(root.shape()));
  }
  for (mlir::NodeId type : types) {
    if (!type.valid()) return Unsupported(root, "its type");
  }
  const mlir::NodeId symbol = n().Make(mlir::NodeKind::kSymbol, functions_[computation.id().value], {}, {});
  const Values results = Emit(OpKind::kFuncCall, operands, {{"callee", symbol}}, types);
  values_[root.id().value] = several ? mlir::ValueId() : results[0];
  elements_[root.id().value] = several ? results : Values();
  return CloseFrame();
}

}  // namespace hlokit::stablehlo
