// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/annotation_custom_calls.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "ir/graph/module.h"

namespace hlokit {
namespace {

constexpr std::string_view kMarkers[] = {"Sharding",
                                         "SPMDFullToShardShape",
                                         "SPMDShardToFullShape",
                                         "LayoutConstraint",
                                         "xla.sdy.FuncResultSharding",
                                         "AssumeGatherIndicesInBound",
                                         "AssumeScatterIndicesInBound",
                                         "GatherScatterIndicesBitpacked"};

}  // namespace

bool IsAnnotationCustomCall(Instruction i) {
  if (i.opcode() != Opcode::kCustomCall || i.operand_count() != 1) return false;
  const std::string_view target = i.string_attr(Attr::kCustomCallTarget);
  return std::find(std::begin(kMarkers), std::end(kMarkers), target) != std::end(kMarkers);
}

}  // namespace hlokit
