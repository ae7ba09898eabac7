// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/memory_table.h"

#include <algorithm>
#include <map>
#include <utility>

#include "passes/analysis/cost_key.h"

namespace hlokit {

std::string_view ToString(BufferKind kind) {
  switch (kind) {
    case BufferKind::kArgument:
      return "argument";
    case BufferKind::kConstant:
      return "constant";
    case BufferKind::kTemporary:
      return "temporary";
    case BufferKind::kResult:
      return "result";
  }
  return "";
}

std::vector<MemoryRow> LiveAtPeakBy(const Module& module, const MemoryAnalysis& memory, CostKey by) {
  std::map<std::string, MemoryRow> by_key;
  for (const LiveBuffer& buffer : memory.LiveAtPeak(module)) {
    const std::string key = KeyOf(ProducerOf(module.instruction(buffer.defining_instruction), buffer.leaf), by);
    MemoryRow& row = by_key[key];
    row.key = key;
    row.bytes += buffer.bytes;
    ++row.buffers;
  }
  std::vector<MemoryRow> rows;
  for (auto& [key, row] : by_key) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(), [](const MemoryRow& a, const MemoryRow& b) { return a.bytes > b.bytes; });
  return rows;
}

Instruction PeakInstruction(const Module& module, const MemoryUse& use) {
  const auto position = static_cast<size_t>(use.peak_position);
  return position < use.order.size() ? module.instruction(use.order[position]) : Instruction();
}

}  // namespace hlokit
