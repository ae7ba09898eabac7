// SPDX-License-Identifier: Apache-2.0
#include "parser/stablehlo/term.h"

#include "absl/types/span.h"

namespace hlokit::stablehlo {

Term Formula::Add(const Node& node) {
  nodes_.push_back(node);
  return {this, static_cast<uint32_t>(nodes_.size() - 1)};
}

Term Formula::Value(InstructionId id) { return Add({.shape = builder_->shape_of(id), .made = id}); }

InstructionId Formula::Emit(Term term) {
  struct Visit {
    uint32_t node;
    size_t operand;  // the next one
  };
  std::vector<Visit> stack = {{term.node_, 0}};
  while (!stack.empty()) {
    Visit& at = stack.back();
    Node& node = nodes_[at.node];
    if (!node.made.valid() && at.operand < node.operand_count) {
      stack.push_back({node.operands[at.operand++], 0});
      continue;
    }
    stack.pop_back();
    if (node.made.valid()) continue;
    std::array<InstructionId, 3> operands;
    for (size_t i = 0; i < node.operand_count; ++i) operands[i] = nodes_[node.operands[i]].made;
    if (node.opcode == Opcode::kConstant) {
      const InstructionId number = builder_->MakeScalarConstant(node.shape.element_type(), node.number);
      node.made = builder_->MakeSplat(node.shape, number);
    } else if (node.opcode == Opcode::kCompare) {
      node.made = builder_->MakeCompare(node.direction, operands[0], operands[1]);
    } else if (node.opcode == Opcode::kConvert) {
      node.made = builder_->MakeConvert(operands[0], node.shape.element_type());
    } else {
      node.made = builder_->Make(node.opcode, node.shape, absl::MakeConstSpan(operands.data(), node.operand_count));
    }
  }
  return nodes_[term.node_].made;
}

}  // namespace hlokit::stablehlo
