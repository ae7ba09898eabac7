// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/llvm/row_passes.h"

#include <algorithm>
#include <cstddef>

namespace hlokit::interp::compiled {
namespace {

// Returns true for a value that costs less to compute again than to keep: one operation on what is read.
bool IsCheap(const LoopProgram& program, const LoopNode& node) {
  const bool one = node.op == LoopOp::kAdd || node.op == LoopOp::kSubtract || node.op == LoopOp::kMultiply;
  if (!one || (node.type != ElementType::kF32 && !IsInteger(node.type))) return false;
  for (int k = 0; k < node.operand_count; ++k) {
    const LoopNode& operand = program.nodes[node.operands[k]];
    if (operand.op != LoopOp::kInput && !operand.row_value) return false;
  }
  return true;
}

}  // namespace

RowPasses PlanPasses(const LoopProgram& program) {
  RowPasses plan;
  const size_t count = program.nodes.size();
  plan.saved_index.assign(count, -1);
  // The pass from which on a value is there. Values of a row are computed after the pass before.
  std::vector<int> level(count, 0);
  int last = 0;
  for (size_t i = 0; i < count; ++i) {
    const LoopNode& node = program.nodes[i];
    for (int k = 0; k < node.operand_count; ++k) level[i] = std::max(level[i], level[node.operands[k]]);
    if (node.op == LoopOp::kReduce) level[i] = std::max(level[node.operands[0]] + 1, level[i]);
    last = std::max(last, level[i]);
  }
  // What each pass is for: elements of reductions, and outputs.
  std::vector<std::vector<uint16_t>> roots(static_cast<size_t>(last) + 1);
  plan.passes.resize(roots.size());
  for (size_t i = 0; i < count; ++i) {
    const LoopNode& node = program.nodes[i];
    if (node.op == LoopOp::kReduce) roots[static_cast<size_t>(level[i]) - 1].push_back(node.operands[0]);
    if (!node.row_value) continue;
    if (level[i] == 0) {
      plan.first_row_values.push_back(static_cast<uint16_t>(i));
    } else {
      plan.passes[static_cast<size_t>(level[i]) - 1].row_values.push_back(static_cast<uint16_t>(i));
    }
  }
  for (size_t o = 0; o < program.outputs.size(); ++o) {
    const uint16_t node = program.outputs[o];
    if (program.nodes[node].row_value) continue;
    roots[static_cast<size_t>(level[node])].push_back(node);
    plan.passes[static_cast<size_t>(level[node])].stores.push_back(static_cast<uint16_t>(o));
  }
  // Nodes that the roots of passes from p on need, down to inputs and saved values.
  std::vector<bool> saved(count, false);
  const auto closure = [&](size_t from, size_t end) {
    std::vector<bool> needed(count, false);
    for (size_t p = from; p < end; ++p) {
      for (uint16_t root : roots[p]) needed[root] = true;
    }
    for (size_t i = count; i-- > 0;) {
      const LoopNode& node = program.nodes[i];
      if (!needed[i] || node.row_value || saved[i]) continue;
      for (int k = 0; k < node.operand_count; ++k) needed[node.operands[k]] = true;
    }
    return needed;
  };
  for (size_t p = 0; p < roots.size(); ++p) {
    RowPasses::Pass& pass = plan.passes[p];
    const std::vector<bool> now = closure(p, p + 1);
    const std::vector<bool> later = closure(p + 1, roots.size());
    std::vector<bool> save(count, false);
    // A value that is at hand, and that a node of a later pass reads which is not.
    const auto at_hand = [&](uint16_t i) {
      return now[i] && !program.nodes[i].row_value && program.nodes[i].op != LoopOp::kInput && !saved[i] &&
             !IsCheap(program, program.nodes[i]);
    };
    for (size_t i = 0; i < count; ++i) {
      if (!later[i] || now[i] || program.nodes[i].row_value) continue;
      for (int k = 0; k < program.nodes[i].operand_count; ++k) {
        if (at_hand(program.nodes[i].operands[k])) save[program.nodes[i].operands[k]] = true;
      }
    }
    for (size_t q = p + 1; q < roots.size(); ++q) {
      for (uint16_t root : roots[q]) {
        if (at_hand(root)) save[root] = true;
      }
    }
    for (size_t i = 0; i < count; ++i) {
      if (now[i] && !program.nodes[i].row_value) pass.elements.push_back(static_cast<uint16_t>(i));
    }
    for (size_t i = 0; i < count; ++i) {
      if (!save[i]) continue;
      saved[i] = true;
      plan.saved_index[i] = plan.saved_count++;
      pass.saves.push_back(static_cast<uint16_t>(i));
    }
  }
  return plan;
}

}  // namespace hlokit::interp::compiled
