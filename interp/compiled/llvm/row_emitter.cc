// SPDX-License-Identifier: Apache-2.0
// Rows whose size is part of the program (LoopProgram::columns): each element is loaded, computed and stored once, and
// stays in a register, or where the compiler puts it, from one pass to the next. Two rows at a time, so that one has
// work while the other is reduced.
#include <algorithm>

#include "interp/compiled/llvm/loop_emitter.h"

namespace hlokit::interp::compiled {

std::vector<LoopEmitter::Part> LoopEmitter::PartsOfRow() {
  std::vector<Part> parts;
  const int64_t columns = program_.columns;
  int lanes = LanesOf(set_);
  for (int64_t begin = 0; begin < columns; begin += lanes) {
    Part part{begin, lanes, nullptr};
    if (begin + lanes > columns && set_ == InstructionSet::kAvx512) {
      const uint64_t ones = (uint64_t{1} << (columns - begin)) - 1;
      part.mask = b_.CreateBitCast(b_.getIntN(static_cast<unsigned>(lanes), ones),
                                   llvm::FixedVectorType::get(b_.getInt1Ty(), static_cast<unsigned>(lanes)));
    } else {
      while (begin + part.lanes > columns) part.lanes /= 2;
      lanes = part.lanes;
    }
    parts.push_back(part);
  }
  return parts;
}

llvm::Value* LoopEmitter::ReduceParts(LoopOp op, ElementType type, const std::vector<Part>& parts,
                                      const Values& elements) {
  const bool orders = IsOrderOfFloats(op, type);
  llvm::Value* total = nullptr;
  for (size_t begin = 0; begin < parts.size();) {
    // The parts of the same number of lanes, as a tree.
    size_t end = begin;
    while (end < parts.size() && parts[end].lanes == parts[begin].lanes) ++end;
    Values level(elements.begin() + static_cast<std::ptrdiff_t>(begin),
                 elements.begin() + static_cast<std::ptrdiff_t>(end));
    llvm::Value* nan = nullptr;
    for (size_t k = 0; orders && k < level.size(); k += 2) {
      llvm::Value* const here = b_.CreateFCmpUNO(level[k], level[std::min(k + 1, level.size() - 1)]);
      nan = nan == nullptr ? here : b_.CreateOr(nan, here);
    }
    while (level.size() > 1) {
      Values next;
      for (size_t k = 0; k + 1 < level.size(); k += 2) {
        next.push_back(orders ? values_.CombineNumbers(op, level[k], level[k + 1])
                              : values_.Combine(op, type, level[k], level[k + 1]));
      }
      if (level.size() % 2 != 0) next.push_back(level.back());
      level = std::move(next);
    }
    llvm::Value* const of_parts = orders ? FoldOrdered(op, level[0], nan) : FoldLanes(op, type, level[0], 1);
    total = total == nullptr ? of_parts : values_.Combine(op, type, total, of_parts);
    begin = end;
  }
  return total;
}

void LoopEmitter::EmitRegisterRows(llvm::Value* rows) {
  const std::vector<Part> parts = PartsOfRow();
  constexpr size_t kMaxPartsTogether = 16;
  rows_together_ = 2 * parts.size() <= kMaxPartsTogether ? 2 : 1;
  const size_t together = static_cast<size_t>(rows_together_);
  llvm::Value* const end = b_.CreateAdd(rows, b_.getInt64(together - 1));
  Values none;
  Loop(b_.getInt64(0), end, rows_together_, &none, [&](llvm::Value* first, Values*) {
    std::vector<Row> group = RowsFrom(first, rows);
    std::vector<std::vector<Values>> values(together);
    for (auto& of_row : values) of_row.assign(parts.size(), Values(program_.nodes.size(), nullptr));
    for (const RowPasses::Pass& pass : passes_.passes) {
      for (size_t q = 0; q < together; ++q) {
        for (size_t k = 0; k < parts.size(); ++k) {
          values_.set_lanes(parts[k].lanes);
          EmitElements(pass.elements, group[q], b_.getInt64(static_cast<uint64_t>(parts[k].begin)), parts[k].mask,
                       &values[q][k]);
          if (&pass == passes_.passes.data()) {
            PrefetchLaterRow(group[q], b_.getInt64(static_cast<uint64_t>(parts[k].begin)));
          }
        }
      }
      for (size_t q = 0; q < together; ++q) {
        for (uint16_t o : pass.stores) {
          const uint16_t node = program_.outputs[o];
          const ElementType type = program_.nodes[node].type;
          for (size_t k = 0; k < parts.size(); ++k) {
            values_.set_lanes(parts[k].lanes);
            Store(type, values[q][k][node],
                  PointerAt(group[q].out[o], type, b_.getInt64(static_cast<uint64_t>(parts[k].begin))), parts[k].mask);
          }
        }
        for (uint16_t i : pass.row_values) {
          const LoopNode& node = program_.nodes[i];
          llvm::Value* reduced = nullptr;
          if (node.op == LoopOp::kReduce) {
            const LoopOp op = static_cast<LoopOp>(node.param);
            const ElementType type = AccumulatorOf(i);
            Values elements;
            for (size_t k = 0; k < parts.size(); ++k) {
              values_.set_lanes(parts[k].lanes);
              llvm::Value* element = values_.ConvertValue(values[q][k][node.operands[0]], node.type, type);
              if (parts[k].mask != nullptr) {
                llvm::Value* const neutral =
                    b_.CreateVectorSplat(static_cast<unsigned>(parts[k].lanes), Neutral(op, type));
                element = b_.CreateSelect(parts[k].mask, element, neutral);
              }
              elements.push_back(element);
            }
            reduced = ReduceParts(op, type, parts, elements);
          }
          EmitRowValue(i, reduced, &group[q]);
        }
      }
    }
    for (const Row& row : group) EmitRowResults(row);
  });
}

}  // namespace hlokit::interp::compiled
