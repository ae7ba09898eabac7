// SPDX-License-Identifier: Apache-2.0
// hlo-inspect: inspects HLO modules without changing them. `hash` fingerprints them and explains differences of
// fingerprints; `stats` counts their contents; `cost` counts operations and bytes; `memory` reports live arrays;
// `shardings` propagates and explains shardings; `find` and others look for instructions and parts of the graph.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "ir/digest/fingerprint.h"
#include "ir/digest/fingerprint_diff.h"
#include "ir/graph/module_statistics.h"
#include "ir/text/printer.h"
#include "tools/cli/cli.h"
#include "tools/cli/output_file.h"
#include "tools/hlo_inspect/annotations.h"
#include "tools/hlo_inspect/collectives.h"
#include "tools/hlo_inspect/command.h"
#include "tools/hlo_inspect/cost.h"
#include "tools/hlo_inspect/dump_dir.h"
#include "tools/hlo_inspect/duplicates.h"
#include "tools/hlo_inspect/find.h"
#include "tools/hlo_inspect/graph.h"
#include "tools/hlo_inspect/grep.h"
#include "tools/hlo_inspect/layouts.h"
#include "tools/hlo_inspect/memory.h"
#include "tools/hlo_inspect/ops.h"
#include "tools/hlo_inspect/shardings.h"
#include "tools/hlo_inspect/top.h"
#include "tools/hlo_inspect/why.h"

namespace hlokit {
namespace {

constexpr std::string_view kTool = "hlo-inspect";

struct HashFlags : cli::InspectFlags {
  std::vector<std::string> with;
  bool computations = false;
  bool instructions = false;
  bool explain = false;
};

struct StatsFlags : cli::InspectFlags {
  size_t top = 20;
};

// Names of --include.
struct KeyComponent {
  std::string_view name;
  bool FingerprintOptions::*option;
};
constexpr KeyComponent kKeyComponents[] = {{"layout", &FingerprintOptions::layout},
                                           {"sharding", &FingerprintOptions::sharding},
                                           {"metadata", &FingerprintOptions::metadata},
                                           {"frontend-attributes", &FingerprintOptions::frontend_attributes},
                                           {"schedule", &FingerprintOptions::schedule}};

// Parses `names`. Returns false for an unknown one, which is left in `unknown`.
bool ParseIngredients(const std::vector<std::string>& names, FingerprintOptions* options, std::string* unknown) {
  for (std::string name : names) {
    std::replace(name.begin(), name.end(), '_', '-');
    if (name == "all") {
      *options = FingerprintOptions::All();
      continue;
    }
    const auto* found = std::find_if(std::begin(kKeyComponents), std::end(kKeyComponents),
                                     [&](const KeyComponent& i) { return i.name == name; });
    if (found == std::end(kKeyComponents)) {
      *unknown = name;
      return false;
    }
    options->*(found->option) = true;
  }
  return true;
}

// ---- hash ----

void WriteIngredients(const FingerprintOptions& options, JsonWriter* json) {
  json->Key("include").BeginArray();
  for (const KeyComponent& i : kKeyComponents) {
    if (options.*(i.option)) json->Value(i.name);
  }
  json->EndArray();
}

void WriteHashText(const HashFlags& flags, const cli::InputPart& part, const Module& module,
                   const FingerprintTable& table, TextWriter* out) {
  *out << ToString(table.module()) << "  " << part.label() << "\n";
  if (!flags.computations && !flags.instructions) return;
  for (Computation c : module.computations()) {
    *out << "  " << ToString(table.of(c.id())) << "  " << (c.is_entry() ? "ENTRY " : "") << c.name() << "\n";
    if (!flags.instructions) continue;
    for (Instruction i : c.instructions()) {
      *out << "    " << ToString(table.of(i.id())) << "  " << i.name() << " " << i.opcode_text() << "\n";
    }
  }
}

void WriteHashJson(const HashFlags& flags, const cli::InputPart& part, const Module& module,
                   const FingerprintTable& table, JsonWriter* json) {
  json->BeginObject();
  json->Member("file", part.source->name());
  if (part.count > 1) json->Member("group", part.index + 1);
  json->Member("module", module.name());
  json->Member("digest", ToString(table.module()));
  WriteIngredients(table.options(), json);
  if (flags.computations || flags.instructions) {
    json->Key("computations").BeginArray();
    for (Computation c : module.computations()) {
      json->BeginObject();
      json->Member("name", c.name()).Member("digest", ToString(table.of(c.id()))).Member("entry", c.is_entry());
      if (flags.instructions) {
        json->Key("instructions").BeginArray();
        for (Instruction i : c.instructions()) {
          json->BeginObject();
          json->Member("name", i.name()).Member("opcode", i.opcode_text()).Member("digest", ToString(table.of(i.id())));
          json->EndObject();
        }
        json->EndArray();
      }
      json->EndObject();
    }
    json->EndArray();
  }
  json->EndObject();
}

void WriteStrings(std::string_view key, const std::vector<std::string>& strings, JsonWriter* json) {
  json->Key(key).BeginArray();
  for (const std::string& s : strings) json->Value(std::string_view(s));
  json->EndArray();
}

void WriteExplanationJson(const FingerprintDiff& diff, const FingerprintedModule& a, const FingerprintedModule& b,
                          TextWriter* out) {
  JsonWriter json(out);
  json.BeginObject().Member("same", diff.same);
  json.Key("digests").BeginArray();
  json.Value(ToString(a.table->module())).Value(ToString(b.table->module())).EndArray();
  WriteIngredients(a.table->options(), &json);
  WriteStrings("ignored_differences", diff.ignored_differences, &json);
  WriteStrings("header", diff.header, &json);
  json.Key("path").BeginArray();
  for (const FingerprintStep& step : diff.path) json.Value(RenderStep(step));
  json.EndArray();
  if (!diff.path.empty()) {
    const auto side = [&](std::string_view key, const FingerprintedModule& m, Instruction i) {
      if (!i.valid()) return;
      json.Key(key).BeginObject();
      json.Member("name", i.name()).Member("location", LocationOf(m, i)).Member("text", ToString(i)).EndObject();
    };
    side("a", a, diff.path.back().a);
    side("b", b, diff.path.back().b);
  }
  WriteStrings("differences", diff.differences, &json);
  json.EndObject();
}

// Returns an exit code like diff: 0 same, 1 different, 2 error, including unreadable modules.
int RunExplain(const HashFlags& flags, const FingerprintOptions& options) {
  cli::DiagnosticReporter diagnostics(flags.input);
  if (std::count(flags.files.begin(), flags.files.end(), "-") > 1) {
    return cli::UsageError(kTool, "hash: standard input can be read only once");
  }
  std::vector<cli::InputPart> parts;
  for (const std::string& path : flags.files) {
    for (cli::InputPart& part : diagnostics.Read(path)) parts.push_back(std::move(part));
  }
  if (diagnostics.exit_code() != cli::kOk) return cli::kUsage;
  if (parts.size() != 2) {
    return cli::UsageError(kTool, StrCat("hash: --explain: expected two modules, found ", parts.size()));
  }
  // A shared context saves memory, since most of the contents are equal.
  const std::unique_ptr<Module> module_a = diagnostics.Parse(parts[0]);
  const std::unique_ptr<Module> module_b =
      diagnostics.Parse(parts[1], module_a == nullptr ? nullptr : module_a->shared_context());
  if (module_a == nullptr || module_b == nullptr) return cli::kUsage;
  if (flags.verify) {
    const bool valid_a = diagnostics.Verify(parts[0], *module_a), valid_b = diagnostics.Verify(parts[1], *module_b);
    if (!valid_a || !valid_b) return cli::kUsage;
  }
  const FingerprintTable table_a(*module_a, options), table_b(*module_b, options);
  const FingerprintedModule a{module_a.get(), &table_a, parts[0].source.get()};
  const FingerprintedModule b{module_b.get(), &table_b, parts[1].source.get()};
  const FingerprintDiff diff = CompareFingerprints(a, b);
  if (!diff.same) diagnostics.Fail(cli::kRejected);
  const bool written = cli::WriteOutputFile(flags.output, &diagnostics, [&](TextWriter& out) {
    if (flags.json) {
      WriteExplanationJson(diff, a, b, &out);
      return;
    }
    out << ToString(table_a.module()) << "  " << parts[0].label() << "\n";
    out << ToString(table_b.module()) << "  " << parts[1].label() << "\n";
    out << RenderText(diff, a, b);
  });
  if (!written) diagnostics.Fail(cli::kUsage);
  return diagnostics.exit_code();
}

int RunHash(const HashFlags& flags) {
  FingerprintOptions options;
  std::string unknown;
  if (!ParseIngredients(flags.with, &options, &unknown)) {
    return cli::UsageError(kTool,
                           StrCat("hash: --include: unknown ingredient `", unknown,
                                  "`; expected layout, sharding, metadata, frontend-attributes, schedule or all"));
  }
  if (flags.explain) return RunExplain(flags, options);
  cli::DiagnosticReporter diagnostics(flags.input);
  return cli::WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    cli::ForEachModule(flags, &diagnostics, [&](const cli::InputPart& part, const Module& module) {
      const FingerprintTable table(module, options);
      if (flags.json) {
        WriteHashJson(flags, part, module, table, &json);
      } else {
        WriteHashText(flags, part, module, table, &out);
      }
    });
    if (flags.json) json.EndArray();
  });
}

// ---- stats ----

void WriteCounts(std::string_view key, const std::vector<ModuleStatistics::Count>& counts, JsonWriter* json) {
  json->Key(key).BeginArray();
  for (const ModuleStatistics::Count& c : counts) {
    json->BeginObject();
    json->Member("name", c.name).Member("count", c.count).Member("bytes", c.bytes).EndObject();
  }
  json->EndArray();
}

void WriteStatsJson(const cli::InputPart& part, const ModuleStatistics& s, JsonWriter* json) {
  json->BeginObject();
  json->Member("file", part.source->name());
  if (part.count > 1) json->Member("group", part.index + 1);
  json->Member("module", s.name);
  const std::pair<std::string_view, int64_t> numbers[] = {
      {"computations", s.computations},
      {"instructions", s.instructions},
      {"entry_instructions", s.entry_instructions},
      {"operands", s.operands},
      {"attributes", s.attributes},
      {"call_sites", s.call_sites},
      {"parameters", s.parameters},
      {"parameter_bytes", s.parameter_bytes},
      {"outputs", s.outputs},
      {"output_bytes", s.output_bytes},
      {"aliased_outputs", s.aliased_outputs},
      {"constants", s.constants},
      {"constant_bytes", s.constant_bytes},
      {"elided_constants", s.elided_constants},
      {"elided_constant_bytes", s.elided_constant_bytes},
      {"largest_constant_bytes", s.largest_constant_bytes},
      {"depth", s.depth},
      {"entry_depth", s.entry_depth},
      {"call_depth", s.call_depth},
      {"distinct_shapes", s.distinct_shapes},
  };
  for (const auto& [key, value] : numbers) json->Member(key, value);
  json->Member("largest_constant", s.largest_constant).Member("deepest_computation", s.deepest_computation);
  WriteCounts("opcodes", s.opcodes, json);
  WriteCounts("element_types", s.element_types, json);
  WriteCounts("shapes", s.shapes, json);
  WriteCounts("fusion_kinds", s.fusion_kinds, json);
  WriteCounts("custom_call_targets", s.custom_call_targets, json);
  json->EndObject();
}

int RunStats(const StatsFlags& flags) {
  cli::DiagnosticReporter diagnostics(flags.input);
  return cli::WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    bool first = true;
    cli::ForEachModule(flags, &diagnostics, [&](const cli::InputPart& part, const Module& module) {
      const ModuleStatistics statistics = CollectStatistics(module);
      if (flags.json) {
        WriteStatsJson(part, statistics, &json);
      } else {
        out << (first ? "" : "\n") << RenderText(statistics, flags.top);
      }
      first = false;
    });
    if (flags.json) json.EndArray();
  });
}

int Run(int argc, char** argv) {
  CLI::App app("inspect HLO modules without changing them", std::string(kTool));
  app.require_subcommand(1);
  app.footer(
      "Notes:\n"
      "  Each command has its own --help.\n\n"
      "Examples:\n"
      "  hlo-inspect hash before.hlo after.hlo\n"
      "  hlo-inspect hash --explain yesterday.hlo today.hlo\n"
      "  hlo-inspect stats module.hlo\n"
      "  hlo-inspect cost module.hlo\n"
      "  hlo-inspect annotations --passes=simplify module.hlo\n"
      "  hlo-inspect find 'dot(transpose(%x), _)' --where='bytes>1e6' module.hlo\n"
      "  hlo-inspect extract dot.4 -o dot.hlo module.hlo\n"
      "  hlo-inspect ops gather");

  HashFlags hash;
  CLI::App* hash_app = app.add_subcommand("hash",
                                          "print fingerprints of modules, which do not depend on names, ids, order, "
                                          "metadata and comments");
  hash.AddTo(hash_app);
  hash_app
      ->add_option(
          "--include", hash.with,
          "include these in the fingerprint too: layout, sharding, metadata, frontend-attributes, schedule, all")
      ->type_name("WHAT")
      ->delimiter(',')
      ->allow_extra_args(false);  // the next argument is a file
  hash_app->add_flag("--computations", hash.computations, "print the digest of each computation too");
  hash_app->add_flag("--instructions", hash.instructions, "print the digest of each instruction too");
  hash_app->add_flag("--explain", hash.explain,
                     "compare two modules and print the first difference; exit code 0: same, 1: different, 2: error");
  hash_app->footer(
      "Examples:\n"
      "  hlo-inspect hash *.hlo | sort                  groups modules that are the same program\n"
      "  hlo-inspect hash --include=layout,sharding m.hlo\n"
      "                                                 a module with other layouts has another digest\n"
      "  hlo-inspect hash --explain a.hlo b.hlo         the first difference, and the path to it\n"
      "  hlo-opt --passes=dce m.hlo | hlo-inspect hash  without instructions and computations that nothing uses");

  StatsFlags stats;
  CLI::App* stats_app = app.add_subcommand("stats", "count operations, shapes, element types, bytes and depth");
  stats.AddTo(stats_app);
  cli::AddNumber(stats_app, "--top", &stats.top, "limit on the rows of each table; the JSON has all")
      ->default_str("20");
  stats_app->footer(
      "Examples:\n"
      "  hlo-inspect stats module.hlo\n"
      "  hlo-inspect stats --json a.hlo b.hlo | jq '.[] | {module, instructions, depth}'");

  std::vector<cli::InspectCommand> commands = {
      cli::AddAnnotationsCommand(&app), cli::AddCostCommand(&app),      cli::AddMemoryCommand(&app),
      cli::AddOpsCommand(&app),         cli::AddShardingsCommand(&app), cli::AddDumpDirCommand(&app),
      cli::AddFindCommand(&app),        cli::AddGrepCommand(&app),      cli::AddTopCommand(&app),
      cli::AddCollectivesCommand(&app), cli::AddLayoutsCommand(&app),   cli::AddDuplicatesCommand(&app),
      cli::AddWhyCommand(&app)};
  for (cli::InspectCommand& command : cli::AddGraphCommands(&app)) commands.push_back(std::move(command));

  const cli::ValueKind what = {"WHAT", [](std::string_view typed, cli::Completion* out) {
                                 std::vector<std::string_view> names = {"all"};
                                 for (const KeyComponent& i : kKeyComponents) names.push_back(i.name);
                                 cli::CompleteList(typed, names, out);
                               }};
  if (const std::optional<int> exit_code = cli::ParseFlags(&app, argc, argv, {what})) return *exit_code;
  for (const cli::InspectCommand& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  return hash_app->parsed() ? RunHash(hash) : RunStats(stats);
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::cli::Main(hlokit::Run, argc, argv); }
