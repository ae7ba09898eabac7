// SPDX-License-Identifier: Apache-2.0
// Reductions of columns over rows (LoopForm::kColumns). Some vectors of columns at a time: their accumulators are in
// registers while the loop goes down the rows.
#include <algorithm>

#include "interp/compiled/llvm/loop_emitter.h"

namespace hlokit::interp::compiled {
namespace {

std::vector<uint16_t> ReductionsOf(const LoopProgram& program) {
  std::vector<uint16_t> reductions;
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    if (program.nodes[i].op == LoopOp::kReduce) reductions.push_back(static_cast<uint16_t>(i));
  }
  return reductions;
}

}  // namespace

void LoopEmitter::EmitColumnBlock(llvm::Value* rows, llvm::Value* resume, llvm::Value* at, int vectors,
                                  llvm::Value* mask) {
  const int lanes = values_.lanes();
  const std::vector<uint16_t> reductions = ReductionsOf(program_);
  // Nodes by how often they are computed.
  std::vector<uint16_t> constants, by_column, by_row, elements;
  for (size_t i = 0; i < program_.nodes.size(); ++i) {
    const LoopNode& node = program_.nodes[i];
    if (node.op == LoopOp::kReduce) continue;
    (node.row_value ? (node.column_value ? constants : by_row) : (node.column_value ? by_column : elements))
        .push_back(static_cast<uint16_t>(i));
  }
  const auto column = [&](int v) { return b_.CreateAdd(at, b_.getInt64(static_cast<uint64_t>(v * lanes))); };
  const auto accumulator = [&](size_t k, int v) {
    llvm::Value* const offset = b_.CreateMul(pitch_, b_.getInt64(k));
    return PointerAt(b_.CreateGEP(b_.getInt8Ty(), scratch_, offset), program_.nodes[reductions[k]].type, column(v));
  };
  Values carried;
  for (int v = 0; v < vectors; ++v) {
    for (size_t k = 0; k < reductions.size(); ++k) {
      const LoopNode& node = program_.nodes[reductions[k]];
      llvm::Value* const before = Load(node.type, accumulator(k, v), mask);
      llvm::Value* const neutral =
          b_.CreateVectorSplat(static_cast<unsigned>(lanes), Neutral(static_cast<LoopOp>(node.param), node.type));
      carried.push_back(b_.CreateSelect(resume, before, neutral));
    }
  }
  // Before the rows: what is the same in all of them.
  Row first = RowAt(b_.getInt64(0));
  for (uint16_t i : constants) EmitRowValue(i, nullptr, &first);
  values_.set_lanes(lanes);
  std::vector<Values> of_columns(static_cast<size_t>(vectors));
  for (int v = 0; v < vectors; ++v) {
    of_columns[static_cast<size_t>(v)].assign(program_.nodes.size(), nullptr);
    EmitElements(by_column, first, column(v), mask, &of_columns[static_cast<size_t>(v)]);
  }
  Loop(b_.getInt64(0), rows, 1, &carried, [&](llvm::Value* number, Values* sums) {
    Row row = RowAt(number);
    row.one = first.one;
    row.all = first.all;
    for (uint16_t i : by_row) EmitRowValue(i, nullptr, &row);
    values_.set_lanes(lanes);
    for (int v = 0; v < vectors; ++v) {
      Values values = of_columns[static_cast<size_t>(v)];
      llvm::Value* const here = column(v);
      EmitElements(elements, row, here, mask, &values);
      for (size_t o = 0; o < program_.outputs.size(); ++o) {
        const uint16_t node = program_.outputs[o];
        const ElementType type = program_.nodes[node].type;
        Store(type, values[node], PointerAt(row.out[o], type, here), mask);
      }
      for (size_t k = 0; k < reductions.size(); ++k) {
        const LoopNode& node = program_.nodes[reductions[k]];
        llvm::Value*& sum = (*sums)[static_cast<size_t>(v) * reductions.size() + k];
        sum = Accumulate(node, node.type, sum, values);
      }
    }
  });
  for (int v = 0; v < vectors; ++v) {
    for (size_t k = 0; k < reductions.size(); ++k) {
      Store(program_.nodes[reductions[k]].type, carried[static_cast<size_t>(v) * reductions.size() + k],
            accumulator(k, v), mask);
    }
  }
}

void LoopEmitter::EmitColumns(llvm::Value* rows, llvm::Value* resume_flag) {
  const int lanes = LanesOf(set_);
  llvm::Value* const resume = b_.CreateICmpNE(resume_flag, b_.getInt64(0));
  // Accumulators and what is the same in all rows are double at most: two registers for each vector of elements.
  size_t held = ReductionsOf(program_).size();
  for (const LoopInput& input : program_.inputs) held += input.column_value && !input.row_value ? 1 : 0;
  const int registers = set_ == InstructionSet::kAvx512 ? 24 : 16;
  const int vectors = std::clamp(registers / (2 * static_cast<int>(std::max<size_t>(held, 1))), 1, 4);
  Values none;
  llvm::Value* at = b_.getInt64(0);
  std::vector<int> blocks = {vectors};
  if (vectors > 1) blocks.push_back(1);
  for (int n : blocks) {
    values_.set_lanes(lanes);
    at = Loop(at, columns_, n * lanes, &none,
              [&](llvm::Value* first, Values*) { EmitColumnBlock(rows, resume, first, n, nullptr); });
  }
  if (set_ == InstructionSet::kAvx512) {
    llvm::Value* const rounded = b_.CreateAdd(columns_, b_.getInt64(static_cast<uint64_t>(lanes - 1)));
    values_.set_lanes(lanes);
    Loop(at, rounded, lanes, &none,
         [&](llvm::Value* first, Values*) { EmitColumnBlock(rows, resume, first, 1, MaskAt(first)); });
  } else {
    values_.set_lanes(1);
    Loop(at, columns_, 1, &none,
         [&](llvm::Value* first, Values*) { EmitColumnBlock(rows, resume, first, 1, nullptr); });
  }
  values_.set_lanes(lanes);
}

}  // namespace hlokit::interp::compiled
