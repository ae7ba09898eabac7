// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/collectives.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/graph/module_statistics.h"
#include "ir/graph/traversal.h"
#include "ir/text/printer.h"
#include "passes/analysis/cost.h"
#include "passes/target/aliases.h"
#include "passes/target/fused_collectives.h"
#include "tools/hlo_inspect/quantities.h"
#include "tools/hlo_inspect/query.h"
#include "tools/hlo_inspect/whole_program.h"

namespace hlokit::cli {
namespace {

struct CollectiveRow {
  Instruction instruction;
  std::string kind;
  std::string groups;  // or pairs
  int64_t bytes = 0;   // of the operands, on a device
  bool async = false;
  int64_t overlapped_instructions = 0;
  int64_t overlapped_flops = 0;  // of what runs between the start and the end
  int64_t overlapped_bytes = 0;
};

std::string TextOfAttr(Instruction i, Attr attr) {
  const std::optional<uint32_t> payload = i.payload(attr);
  std::string text;
  if (!payload) return text;
  TextWriter out(&text);
  PrintAttrValue(out, i.module(), {attr, *payload});
  out.Flush();
  return text;
}

// Returns true for parameters, constants and others that take no time.
bool TakesNoTime(Instruction i) {
  return !tpu::GeneratesCode(i) || HasTrait(i.opcode(), kStartsAsync) || HasTrait(i.opcode(), kEndsAsync);
}

// Collects the collectives of a computation in its order, and what runs between their starts and ends.
void Collect(Computation computation, const CostAnalysis& costs, const tpu::FusedCollectives& fused,
             std::vector<CollectiveRow>* rows) {
  struct Sums {
    int64_t instructions = 0, flops = 0, bytes = 0;
  };
  Sums sums;
  std::map<uint32_t, std::pair<size_t, Sums>> open;  // by id of the start: its row, and the sums there
  for (const Instruction i : computation.instructions()) {
    const tpu::FusedCollective& in_fusion = fused.Of(i);
    std::vector<Instruction> collectives;
    for (const InstructionId id : in_fusion.collectives) collectives.push_back(i.module().instruction(id));
    const Instruction wrapped = tpu::AsyncWrappedInstruction(i);
    if (HasTrait(wrapped.opcode(), kCollective) && !HasTrait(i.opcode(), kEndsAsync) &&
        !HasTrait(i.opcode(), kUpdatesAsync)) {
      collectives.push_back(wrapped);
    }
    for (const Instruction collective : collectives) {
      CollectiveRow row;
      row.instruction = i;
      row.kind = std::string(tpu::NameOfCollective(collective, in_fusion.scatters && collective == collectives[0]));
      row.groups = TextOfAttr(collective, Attr::kReplicaGroups);
      if (row.groups.empty()) row.groups = TextOfAttr(collective, Attr::kSourceTargetPairs);
      for (const Instruction operand : collective.operands()) {
        row.bytes = SaturatingAdd(row.bytes, ByteSize(operand.shape()));
      }
      row.async = HasTrait(i.opcode(), kStartsAsync) || in_fusion.role == tpu::CollectiveRole::kStart;
      if (row.async) open.emplace(i.id().value, std::pair(rows->size(), sums));
      rows->push_back(std::move(row));
    }
    if (!collectives.empty()) continue;
    if (in_fusion.role == tpu::CollectiveRole::kDone || (HasTrait(i.opcode(), kEndsAsync) && i.operand_count() > 0)) {
      Instruction start = in_fusion.start.valid() ? i.module().instruction(in_fusion.start) : i.operand(0);
      while (HasTrait(start.opcode(), kUpdatesAsync) && start.operand_count() > 0) start = start.operand(0);
      if (const auto found = open.find(start.id().value); found != open.end()) {
        const auto& [number, at] = found->second;
        CollectiveRow& row = (*rows)[number];
        row.overlapped_instructions = sums.instructions - at.instructions;
        row.overlapped_flops = sums.flops - at.flops;
        row.overlapped_bytes = sums.bytes - at.bytes;
      }
      continue;
    }
    if (TakesNoTime(i)) continue;
    ++sums.instructions;
    sums.flops = SaturatingAdd(sums.flops, costs.Of(i).flops);
    sums.bytes = SaturatingAdd(sums.bytes, costs.Of(i).bytes());
  }
}

struct KindTotal {
  int64_t count = 0, async = 0, overlapped = 0, bytes = 0;
};

void Write(const InspectFlags& flags, const InputPart& part, const Module& module,
           const std::vector<CollectiveRow>& rows, TextWriter* out, JsonWriter* json) {
  const TextLines lines(part.source->text());
  std::map<std::string, KindTotal> totals;
  for (const CollectiveRow& row : rows) {
    KindTotal& total = totals[row.kind];
    ++total.count;
    total.async += row.async;
    total.overlapped += row.overlapped_instructions > 0;
    total.bytes = SaturatingAdd(total.bytes, row.bytes);
  }
  if (flags.json) {
    BeginModule(part, module, json);
    WriteWholeProgramMember(module, json);
    json->Key("collectives").BeginArray();
    for (const CollectiveRow& row : rows) {
      json->BeginObject().Member("kind", row.kind).Member("groups", row.groups).Member("bytes", row.bytes);
      json->Member("async", row.async).Member("overlapped_instructions", row.overlapped_instructions);
      json->Member("overlapped_flops", row.overlapped_flops).Member("overlapped_bytes", row.overlapped_bytes);
      WriteMembers(lines, row.instruction, json);
      json->EndObject();
    }
    json->EndArray().Key("totals").BeginArray();
    for (const auto& [kind, total] : totals) {
      json->BeginObject().Member("kind", kind).Member("count", total.count).Member("async", total.async);
      json->Member("overlapped", total.overlapped).Member("bytes", total.bytes).EndObject();
    }
    json->EndArray().EndObject();
    return;
  }
  for (const CollectiveRow& row : rows) {
    constexpr size_t kMaxGroups = 40;
    const std::string groups =
        row.groups.size() > kMaxGroups ? StrCat(row.groups.substr(0, kMaxGroups), "...") : row.groups;
    const std::string overlap = !row.async
                                    ? "blocks"
                                    : StrCat("beside ", row.overlapped_instructions,
                                             row.overlapped_instructions == 1 ? " instruction, " : " instructions, ",
                                             HumanCount(static_cast<double>(row.overlapped_flops)), " flops, ",
                                             HumanBytes(row.overlapped_bytes));
    *out << part.label() << ":" << lines.Of(row.instruction) << ": " << row.instruction.name() << "  " << row.kind
         << "  " << HumanBytes(row.bytes) << "  groups " << (groups.empty() ? "{}" : groups) << "  " << overlap << "\n";
  }
  WriteUnpartitionedNote(module, out);
  *out << absl::StrFormat("%7s %7s %11s %12s  %s\n", "count", "async", "overlapped", "bytes", "kind");
  for (const auto& [kind, total] : totals) {
    *out << absl::StrFormat("%7d %7d %11d %12s  %s\n", total.count, total.async, total.overlapped,
                            HumanBytes(total.bytes), kind);
  }
}

int Run(const InspectFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    ForEachModule(flags, &diagnostics, [&](const InputPart& part, const Module& module) {
      const CostAnalysis costs(module);
      std::vector<CollectiveRow> rows;
      const ComputationRoles roles = RolesOf(module);
      const tpu::FusedCollectives fused(module);
      for (const Computation c : module.computations()) {
        if (roles.async[c.id().value] == 0 && roles.fusion[c.id().value] == 0) Collect(c, costs, fused, &rows);
      }
      Write(flags, part, module, rows, &out, &json);
    });
    if (flags.json) json.EndArray();
  });
}

}  // namespace

InspectCommand AddCollectivesCommand(CLI::App* app) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* command =
      app->add_subcommand("collectives", "list the communication among devices: kind, groups, bytes, overlap");
  flags->AddTo(command);
  command->footer(
      "Notes:\n"
      "  Bytes are those of the operands on one device. A collective overlaps what is\n"
      "  between its start and its end in the order of the text, which is the\n"
      "  schedule of a scheduled module. Collectives in fusions are listed with the\n"
      "  fusion: an all-reduce of which a device keeps its part as a reduce-scatter.\n\n"
      "Examples:\n"
      "  hlo-inspect collectives module.hlo\n"
      "  hlo-opt --passes=tpu module.hlo | hlo-inspect collectives\n"
      "  hlo-inspect collectives --json module.hlo | jq '.[0].totals'");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace hlokit::cli
