// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/duplicates.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "passes/analysis/duplicates.h"
#include "tools/hlo_inspect/query.h"

namespace hlokit::cli {
namespace {

struct DuplicatesFlags : InspectFlags {
  size_t top = 20;
};

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) StrAppend(&text, text.empty() ? "" : ", ", word);
  return text;
}

void Write(const DuplicatesFlags& flags, const InputPart& part, const Module& module,
           const std::vector<DuplicateGroup>& groups, TextWriter* out, JsonWriter* json) {
  const TextLines lines(part.source->text());
  if (flags.json) {
    BeginModule(part, module, json);
    json->Key("groups").BeginArray();
    for (const DuplicateGroup& group : groups) {
      json->BeginObject().Member("bytes", group.bytes);
      WriteMembers(lines, group.first, json);
      json->Key("others").BeginArray();
      for (const Duplicate& other : group.others) {
        json->BeginObject().Key("apart").BeginArray();
        for (const std::string& reason : other.apart) json->Value(reason);
        json->EndArray();
        WriteMembers(lines, other.instruction, json);
        json->EndObject();
      }
      json->EndArray().EndObject();
    }
    json->EndArray().EndObject();
    return;
  }
  int64_t others = 0;
  for (const DuplicateGroup& group : groups) others += static_cast<int64_t>(group.others.size());
  for (size_t k = 0; k < std::min(flags.top, groups.size()); ++k) {
    const DuplicateGroup& group = groups[k];
    *out << LineOf(lines, group.first) << "\n";
    for (const Duplicate& other : group.others) {
      *out << "  " << other.instruction.name() << "  "
           << (other.apart.empty() ? std::string("nothing keeps it apart: cse merges it")
                                   : StrCat("apart by ", Joined(other.apart)))
           << "\n";
    }
  }
  if (groups.size() > flags.top) *out << "... " << static_cast<int64_t>(groups.size() - flags.top) << " more (--top)\n";
  *out << Counted(others, "duplicate") << " of " << Counted(groups.size(), "instruction") << " in " << part.label()
       << "\n";
}

int Run(const DuplicatesFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    ForEachModule(flags, &diagnostics, [&](const InputPart& part, const Module& module) {
      Write(flags, part, module, FindDuplicates(module), &out, &json);
    });
    if (flags.json) json.EndArray();
  });
}

}  // namespace

InspectCommand AddDuplicatesCommand(CLI::App* app) {
  auto flags = std::make_shared<DuplicatesFlags>();
  CLI::App* command = app->add_subcommand(
      "duplicates", "list instructions that compute the same from the same operands, and what keeps them apart");
  AddNumber(command, "--top", &flags->top, "limit on the groups; the JSON has all")->default_str("20");
  flags->AddTo(command);
  command->footer(
      "Notes:\n"
      "  The first of a group is the one that the pass cse would keep. An attribute\n"
      "  is named if the two do not have it alike; layout is that of the result.\n\n"
      "Examples:\n"
      "  hlo-inspect duplicates module.hlo\n"
      "  hlo-opt --passes=cse module.hlo | hlo-inspect duplicates    what is left, and why");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace hlokit::cli
