// SPDX-License-Identifier: Apache-2.0
#include "passes/view/remark_lines.h"

#include <cstdint>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"

namespace hlokit {

std::vector<std::string> RemarkLinesOf(const Module& module, absl::Span<const Remark> remarks) {
  constexpr size_t kMaxLines = 24;  // of an instruction
  std::vector<std::string> lines(module.instruction_id_bound());
  std::vector<size_t> counts(module.instruction_id_bound(), 0);
  absl::flat_hash_map<std::string, uint32_t> ids;
  std::vector<InstructionId> fusion_of(module.computation_id_bound());
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      ids.try_emplace(std::string(i.name()), i.id().value);
      if (i.opcode() != Opcode::kFusion) continue;
      i.ForEachCallee([&](Computation body) { fusion_of[body.id().value] = i.id(); });
    }
  }
  const auto add = [&](uint32_t id, const Remark& remark) {
    if (counts[id]++ >= kMaxLines) return;
    const RemarkRuleInfo& info = InfoOf(remark.rule);
    StrAppend(&lines[id], lines[id].empty() ? "" : "\n", ToString(info.kind), " (", info.id, "): ", remark.Message());
    if (!info.advice.empty()) StrAppend(&lines[id], "\n    to change it: ", info.advice);
  };
  for (const Remark& remark : remarks) {
    const auto found = ids.find(remark.instruction);
    if (found != ids.end()) {
      add(found->second, remark);
      const InstructionId fusion = fusion_of[module.record(InstructionId(found->second)).parent.value];
      if (fusion.valid() && InfoOf(remark.rule).kind == RemarkKind::kMissed) add(fusion.value, remark);
    }
    const auto related = ids.find(remark.related);
    if (related != ids.end() && remark.related != remark.instruction) add(related->second, remark);
  }
  return lines;
}

}  // namespace hlokit
