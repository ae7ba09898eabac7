// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/find.h"

#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "passes/query/flow.h"
#include "tools/hlo_inspect/query.h"

namespace hlokit::cli {
namespace {

struct FindFlags : InspectFlags {
  std::string pattern, where;
  int64_t neighborhood = 0;
  size_t limit = 100;
};

void WriteText(const FindFlags& flags, const query::Query& query, const InputPart& part, const Module& module,
               const std::vector<query::Match>& matches, TextWriter* out) {
  const TextLines lines(part.source->text());
  const query::ValueFlow flow(module);
  size_t shown = 0;
  for (const query::Match& match : matches) {
    if (shown++ == flags.limit) {
      *out << "... " << static_cast<int64_t>(matches.size() - flags.limit) << " more (--top)\n";
      break;
    }
    query::Neighborhood neighbors;
    if (flags.neighborhood > 0) {
      if (shown > 1) *out << "--\n";
      neighbors = flow.NeighborsOf(match.root, flags.neighborhood);
    }
    for (const Instruction i : neighbors.before) *out << "  " << LineOf(lines, i) << "\n";
    *out << LineOf(lines, match.root) << "\n";
    for (size_t v = 0; v < match.variables.size(); ++v) {
      if (!match.variables[v].valid() || match.variables[v] == match.root) continue;
      *out << "    %" << query.pattern.variables()[v] << ": " << LineOf(lines, match.variables[v]) << "\n";
    }
    for (const Instruction i : neighbors.after) *out << "  " << LineOf(lines, i) << "\n";
  }
  *out << Counted(matches.size(), "match", "matches") << " in " << part.label() << "\n";
}

void WriteJson(const FindFlags& flags, const query::Query& query, const InputPart& part, const Module& module,
               const std::vector<query::Match>& matches, JsonWriter* json) {
  const TextLines lines(part.source->text());
  const query::ValueFlow flow(module);
  BeginModule(part, module, json);
  json->Member("count", matches.size()).Key("matches").BeginArray();
  for (const query::Match& match : matches) {
    json->BeginObject();
    WriteMembers(lines, match.root, json);
    json->Key("variables").BeginObject();
    for (size_t v = 0; v < match.variables.size(); ++v) {
      if (match.variables[v].valid()) json->Member(query.pattern.variables()[v], match.variables[v].name());
    }
    json->EndObject();
    if (flags.neighborhood > 0) {
      const query::Neighborhood neighbors = flow.NeighborsOf(match.root, flags.neighborhood);
      json->Key("before").BeginArray();
      for (const Instruction i : neighbors.before) json->Value(i.name());
      json->EndArray().Key("after").BeginArray();
      for (const Instruction i : neighbors.after) json->Value(i.name());
      json->EndArray();
    }
    json->EndObject();
  }
  json->EndArray().EndObject();
}

int Run(const FindFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  const std::optional<query::Query> query = ParseQuery(flags.pattern, flags.where, &diagnostics);
  if (!query) return diagnostics.exit_code();
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    ForEachModule(flags, &diagnostics, [&](const InputPart& part, const Module& module) {
      const std::vector<query::Match> matches = query->Find(module);
      if (flags.json) {
        WriteJson(flags, *query, part, module, matches, &json);
      } else {
        WriteText(flags, *query, part, module, matches, &out);
      }
    });
    if (flags.json) json.EndArray();
  });
}

}  // namespace

InspectCommand AddFindCommand(CLI::App* app) {
  auto flags = std::make_shared<FindFlags>();
  CLI::App* command = app->add_subcommand("find", "print the instructions that match a pattern");
  AddQueryFlags(command, &flags->pattern, &flags->where);
  flags->AddTo(command);
  AddNumber(command, "--depth,--neighborhood", &flags->neighborhood,
            "print the instructions up to this distance before and after each match too", 0, 1000)
      ->default_str("0");
  AddNumber(command, "--top,--limit", &flags->limit, "limit on the matches of a module; the JSON has all")
      ->default_str("100");
  command->footer(
      "Notes:\n"
      "  A pattern is an opcode, several opcodes a|b, the beginning of some all-*, a\n"
      "  number (a constant of this value), _ (any instruction) or a %variable, with\n"
      "  patterns of its operands in parentheses; `...` at the end is any further\n"
      "  ones. %d=dot(%x, %x) names a match; a variable twice is one instruction.\n\n"
      "Fields of --where, besides attributes by their names in HLO text:\n" +
      [] {
        std::string fields;
        const std::string table = query::DescribeFields();
        for (size_t at = 0; at < table.size(); at = table.find('\n', at) + 1) {
          StrAppend(&fields, "  ", table.substr(at, table.find('\n', at) + 1 - at));
        }
        return fields;
      }() +
      "\nExamples:\n"
      "  hlo-inspect find 'dot(transpose(%x), convert(%y))' module.hlo\n"
      "  hlo-inspect find 'fusion' --where='bytes>1MiB && scope~\"attention\"' module.hlo\n"
      "  hlo-inspect find 'add(%x, 0)' --where='%x.users==1' --json module.hlo\n"
      "  hlo-inspect find 'dot' --where='!lhs_contracting_dims~\"1\"' --neighborhood=2 module.hlo");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace hlokit::cli
