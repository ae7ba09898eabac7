// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/layout_statistics.h"

#include <algorithm>
#include <map>

#include "ir/core/saturating.h"
#include "ir/graph/module_statistics.h"

namespace hlokit {

std::string LayoutText(Shape shape) { return ToString(shape).substr(ToString(shape, /*with_layout=*/false).size()); }

LayoutStatistics CollectLayouts(const Module& module) {
  LayoutStatistics layouts;
  std::map<std::string, LayoutCount> counts;
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      if (!i.shape().IsArray() || i.shape().rank() == 0) continue;
      LayoutCount& count = counts[LayoutText(i.shape())];
      ++count.arrays;
      count.bytes = SaturatingAdd(count.bytes, ByteSize(i.shape()));
      if (i.opcode() == Opcode::kCopy && i.operand(0).shape().IsArray() && i.shape() != i.operand(0).shape()) {
        layouts.changes.push_back(i);
        layouts.change_bytes = SaturatingAdd(layouts.change_bytes, ByteSize(i.shape()));
      }
    }
  }
  for (auto& [layout, count] : counts) {
    count.layout = layout;
    layouts.counts.push_back(count);
  }
  std::stable_sort(layouts.counts.begin(), layouts.counts.end(),
                   [](const LayoutCount& a, const LayoutCount& b) { return a.bytes > b.bytes; });
  std::stable_sort(layouts.changes.begin(), layouts.changes.end(),
                   [](Instruction a, Instruction b) { return ByteSize(a.shape()) > ByteSize(b.shape()); });
  return layouts;
}

}  // namespace hlokit
