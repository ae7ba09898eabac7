// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/layouts.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/graph/module_statistics.h"
#include "tools/hlo_inspect/query.h"
#include "tools/hlo_inspect/whole_program.h"

namespace hlokit::cli {
namespace {

struct LayoutFlags : InspectFlags {
  size_t top = 20;
};

struct LayoutCount {
  std::string layout;  // "{1,0:T(8,128)}", or "" without one
  int64_t arrays = 0;
  int64_t bytes = 0;
};

std::string LayoutOf(Shape shape) { return ToString(shape).substr(ToString(shape, /*with_layout=*/false).size()); }

struct Layouts {
  std::vector<LayoutCount> counts;   // by bytes, the largest first
  std::vector<Instruction> changes;  // copies to another layout, the largest first
  int64_t change_bytes = 0;
};

Layouts Collect(const Module& module) {
  Layouts layouts;
  std::map<std::string, LayoutCount> counts;
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      if (!i.shape().IsArray() || i.shape().rank() == 0) continue;
      LayoutCount& count = counts[LayoutOf(i.shape())];
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

void Write(const LayoutFlags& flags, const InputPart& part, const Module& module, TextWriter* out, JsonWriter* json) {
  const TextLines lines(part.source->text());
  const Layouts layouts = Collect(module);
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
      json->BeginObject().Member("from", LayoutOf(i.operand(0).shape())).Member("to", LayoutOf(i.shape()));
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
    *out << "  " << LayoutOf(i.operand(0).shape()) << " -> " << LayoutOf(i.shape()) << "  " << LineOf(part, lines, i)
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
