// SPDX-License-Identifier: Apache-2.0
#include "passes/instrumentation/dependent_results.h"

#include <algorithm>

#include "ir/graph/module.h"
#include "ir/graph/traversal.h"

namespace hlokit {

std::vector<uint8_t> DependentResults(const Module& module, absl::Span<const Opcode> opcodes) {
  std::vector<uint8_t> depends(module.instruction_id_bound(), 0), holds(module.computation_id_bound(), 0);
  for (ComputationId id : ComputationPostOrder(module)) {
    for (InstructionId at : PostOrder(module.computation(id))) {
      const Instruction i = module.instruction(at);
      bool dependent = std::find(opcodes.begin(), opcodes.end(), i.opcode()) != opcodes.end();
      for (Instruction operand : i.operands()) dependent |= depends[operand.id().value] != 0;
      i.ForEachCallee([&](Computation callee) { dependent |= holds[callee.id().value] != 0; });
      depends[at.value] = dependent ? 1 : 0;
      if (dependent) holds[id.value] = 1;
    }
  }
  const Instruction root = module.entry().root();
  std::vector<uint8_t> results;
  const auto add = [&](Instruction i) {
    results.resize(results.size() + static_cast<size_t>(i.shape().leaf_count()), depends[i.id().value]);
  };
  if (root.opcode() != Opcode::kTuple) {
    add(root);
  } else {
    for (Instruction operand : root.operands()) add(operand);
  }
  return results;
}

}  // namespace hlokit
