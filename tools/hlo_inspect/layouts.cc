// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/layouts.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "ir/graph/module_statistics.h"
#include "passes/analysis/layout_statistics.h"
#include "tools/hlo_inspect/query.h"
#include "tools/hlo_inspect/whole_program.h"

namespace hlokit::cli {
namespace {

struct LayoutFlags : InspectFlags {
  size_t top = 20;
};

void Write(const LayoutFlags& flags, const InputPart& part, const Module& module, TextWriter* out, JsonWriter* json) {
  const TextLines lines(part.source->text());
  const LayoutStatistics layouts = CollectLayouts(module);
  if (flags.json) {
    BeginModule(part, module, json);
    WriteWholeProgramMember(module, json);
    json->Key("layouts").BeginArray();
    for (const LayoutCount& count : layouts.counts) {
      json->BeginObject().Member("layout", count.layout).Member("arrays", count.arrays).Member("bytes", count.bytes);
      json->EndObject();
    }
    json->EndArray().Key("changes").BeginArray();
    for (const Instruction i : layouts.changes) {
      json->BeginObject().Member("from", LayoutText(i.operand(0).shape())).Member("to", LayoutText(i.shape()));
      json->Member("bytes", ByteSize(i.shape()));
      WriteMembers(lines, i, json);
      json->EndObject();
    }
    json->EndArray().Member("change_bytes", layouts.change_bytes).EndObject();
    return;
  }
  *out << part.label() << ":\n";
  WriteWholeProgramNote(module, out);
  *out << absl::StrFormat("%9s %12s  %s\n", "arrays", "bytes", "layout");
  for (size_t k = 0; k < std::min(flags.top, layouts.counts.size()); ++k) {
    const LayoutCount& count = layouts.counts[k];
    *out << absl::StrFormat("%9d %12s  %s\n", count.arrays, HumanBytes(count.bytes),
                            count.layout.empty() ? "(none)" : count.layout);
  }
  if (layouts.counts.size() > flags.top) {
    *out << "      ... " << static_cast<int64_t>(layouts.counts.size() - flags.top) << " more\n";
  }
  *out << static_cast<int64_t>(layouts.changes.size()) << " copies to another layout, "
       << HumanBytes(layouts.change_bytes) << "\n";
  for (size_t k = 0; k < std::min(flags.top, layouts.changes.size()); ++k) {
    const Instruction i = layouts.changes[k];
    *out << "  " << LayoutText(i.operand(0).shape()) << " -> " << LayoutText(i.shape()) << "  " << LineOf(lines, i)
         << "\n";
  }
  if (layouts.changes.size() > flags.top) {
    *out << "  ... " << static_cast<int64_t>(layouts.changes.size() - flags.top) << " more\n";
  }
}

int Run(const LayoutFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    ForEachModule(flags, &diagnostics,
                  [&](const InputPart& part, const Module& module) { Write(flags, part, module, &out, &json); });
    if (flags.json) json.EndArray();
  });
}

}  // namespace

InspectCommand AddLayoutsCommand(CLI::App* app) {
  auto flags = std::make_shared<LayoutFlags>();
  CLI::App* command = app->add_subcommand("layouts", "count arrays by layout, and list copies to another layout");
  flags->AddTo(command);
  AddNumber(command, "--top", &flags->top, "limit on the rows; the JSON has all")->default_str("20");
  command->footer(
      "Examples:\n"
      "  hlo-inspect layouts module.hlo\n"
      "  hlo-opt --passes=layout-assignment module.hlo | hlo-inspect layouts\n"
      "  hlo-inspect find copy --where='layout!=\"{1,0}\"' module.hlo    those of one layout");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace hlokit::cli
