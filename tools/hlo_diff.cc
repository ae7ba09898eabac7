// SPDX-License-Identifier: Apache-2.0
// hlo-diff: compares two HLO modules instruction by instruction.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/text/printer.h"
#include "passes/diff/diff_text.h"
#include "passes/diff/module_diff.h"
#include "passes/diff/module_patch.h"
#include "passes/view/diff_documents.h"
#include "simulator/report/instruction_times.h"
#include "tools/cli/cli.h"
#include "tools/cli/flags/device_flag.h"
#include "tools/cli/number_flag.h"
#include "tools/cli/output_file.h"
#include "tools/cli/pages/web_page.h"

namespace hlokit {
namespace {

constexpr std::string_view kTool = "hlo-diff";

constexpr char kExamples[] = R"(Examples:
  hlo-diff before.hlo after.hlo             what changed, as text
  hlo-diff --ignore=names,metadata,layout a.hlo b.hlo
                                            without these differences
  hlo-diff --device=v5p a.hlo b.hlo         the simulated time too
  hlo-diff --html=graphs.html a.hlo b.hlo   both graphs as a page
  hlo-diff --json a.hlo b.hlo -o patch.json
  hlo-diff --apply=patch.json a.hlo         b.hlo again)";

struct Flags {
  cli::InputOptions input;
  std::vector<std::string> files;
  std::string output = "-";
  std::string apply;
  std::vector<std::string> ignore = {"names"};
  std::string device;
  std::string color = "auto";
  bool json = false;
  std::string html;  // file; "": no page
  bool summary = false;
  bool verify = true;
  DiffTextOptions text;
};

// Parses --ignore. Returns false after an error, which is in `error`.
bool ParseIgnored(const std::vector<std::string>& names, Aspects* ignored, std::string* error) {
  std::vector<std::string_view> known;
  for (size_t k = 0; k < kAspects; ++k) known.push_back(ToString(static_cast<Aspect>(k)));
  for (const std::string& name : names) {
    if (name.empty() || name == "none") continue;
    const std::optional<Aspect> aspect = AspectFromText(name);
    if (!aspect) {
      *error = StrCat("--ignore: unknown difference `", name, "`", DidYouMeanSuffix(name, known));
      return false;
    }
    ignored->Add(*aspect);
  }
  return true;
}

// Adds the time of both modules on the device to the summary. Returns false after an error, which is printed.
bool AddSimulatedTime(const Flags& flags, const Module& a, const Module& b, cli::DiagnosticReporter* diagnostics,
                      DiffSummary* summary) {
  DiffQuantity time{StrCat("microseconds on ", flags.device), 0, 0, false};
  for (const Module* module : {&a, &b}) {
    const std::optional<tpu::InstructionTimes> times =
        cli::TimeOnDevice(flags.device, module->name(), *module, diagnostics);
    if (!times) return false;
    (module == &a ? time.before : time.after) = 1e6 * times->device_seconds;
  }
  summary->totals.push_back(time);
  return true;
}

void WriteRows(std::string_view key, const std::vector<DiffSummary::Row>& rows, JsonWriter* json) {
  json->Key(key).BeginArray();
  for (const DiffSummary::Row& row : rows) {
    json->BeginObject().Member("key", row.key);
    json->Member("added", row.added).Member("removed", row.removed).Member("changed", row.changed);
    json->Member("flops_before", row.flops_before).Member("flops_after", row.flops_after);
    json->Member("bytes_before", row.bytes_before).Member("bytes_after", row.bytes_after).EndObject();
  }
  json->EndArray();
}

void WriteInstruction(Instruction i, JsonWriter* json) {
  json->Member("name", i.name()).Member("computation", i.parent().name()).Member("text", ToString(i));
}

void WriteDiffJson(const Module& a, const Module& b, const ModuleDiff& diff, const DiffSummary& summary,
                   TextWriter* out) {
  JsonWriter json(out);
  json.BeginObject().Member("same", diff.same()).Member("unchanged", diff.unchanged);
  json.Key("header").BeginArray();
  for (const std::string& line : diff.header) json.Value(std::string_view(line));
  json.EndArray();
  json.Key("pairs_that_differ").BeginObject();
  for (size_t k = 0; k < kAspects; ++k) json.Member(ToString(static_cast<Aspect>(k)), diff.count_by_aspect[k]);
  json.EndObject();
  json.Key("causes").BeginArray();
  for (const DiffCause& cause : summary.causes) {
    json.BeginObject().Member("what", cause.what).Member("change", cause.change).Member("pairs", cause.pairs);
    json.Key("examples").BeginArray();
    for (const Instruction i : cause.examples) json.Value(i.name());
    json.EndArray().EndObject();
  }
  json.EndArray();
  json.Key("totals").BeginArray();
  for (const DiffQuantity& q : summary.totals) {
    json.BeginObject().Member("name", q.name).Member("before", q.before).Member("after", q.after).EndObject();
  }
  json.EndArray();
  WriteRows("by_scope", summary.by_scope, &json);
  WriteRows("by_opcode", summary.by_opcode, &json);
  json.Key("changed").BeginArray();
  for (const ChangedInstruction& c : diff.changed) {
    json.BeginObject();
    json.Key("before").BeginObject();
    WriteInstruction(c.a, &json);
    json.EndObject();
    json.Key("after").BeginObject();
    WriteInstruction(c.b, &json);
    json.EndObject();
    json.Key("aspects").BeginArray();
    for (size_t k = 0; k < kAspects; ++k) {
      if (c.aspects.Contains(static_cast<Aspect>(k))) json.Value(ToString(static_cast<Aspect>(k)));
    }
    json.EndArray();
    json.Key("differences").BeginArray();
    for (const std::string& text : c.differences) json.Value(std::string_view(text));
    json.EndArray().EndObject();
  }
  json.EndArray();
  const auto list = [&](std::string_view key, const std::vector<Instruction>& instructions) {
    json.Key(key).BeginArray();
    for (const Instruction i : instructions) {
      json.BeginObject();
      WriteInstruction(i, &json);
      json.EndObject();
    }
    json.EndArray();
  };
  list("added", diff.added);
  list("removed", diff.removed);
  json.Key("patch").BeginObject();
  WriteJson(MakePatch(a, b, diff.matching), &json);
  json.EndObject().EndObject();
}

// Returns the modules of the files, fewer after errors, which are printed.
std::vector<std::unique_ptr<Module>> ReadModules(const Flags& flags, cli::DiagnosticReporter* diagnostics) {
  std::vector<std::unique_ptr<Module>> modules;
  for (const std::string& path : flags.files) {
    const std::vector<cli::InputPart> parts = diagnostics->Read(path);
    if (parts.size() != 1) {
      if (!parts.empty()) diagnostics->ShowError(path, "expected one module", cli::kUsage);
      return modules;
    }
    // A shared context makes contents comparable by their ids.
    std::unique_ptr<Module> module =
        diagnostics->Parse(parts[0], modules.empty() ? nullptr : modules[0]->shared_context());
    if (module == nullptr || (flags.verify && !diagnostics->Verify(parts[0], *module))) return modules;
    if (!module->entry().valid()) {
      diagnostics->ShowError(path, "the module has no entry computation", cli::kRejected);
      return modules;
    }
    modules.push_back(std::move(module));
  }
  return modules;
}

int Apply(const Flags& flags) {
  cli::DiagnosticReporter diagnostics(flags.input);
  const std::vector<std::unique_ptr<Module>> modules = ReadModules(flags, &diagnostics);
  if (modules.size() != 1) return diagnostics.exit_code();
  const std::vector<cli::InputPart> parts = diagnostics.Read(flags.apply);
  if (parts.empty()) return diagnostics.exit_code();
  const absl::StatusOr<ModulePatch> patch = ReadPatch(parts[0].text);
  const absl::StatusOr<std::string> text = patch.ok() ? ApplyPatch(*modules[0], *patch) : patch.status();
  if (!text.ok()) {
    diagnostics.ShowError(flags.apply, std::string(text.status().message()), cli::kRejected);
    return diagnostics.exit_code();
  }
  cli::WriteOutputFile(flags.output, &diagnostics, [&](TextWriter& out) { out << *text; });
  return diagnostics.exit_code();
}

// Returns an exit code like diff's: 0 the same, 1 different, 2 an error, modules that are not valid included.
int Compare(Flags& flags, const DiffOptions& options) {
  cli::DiagnosticReporter diagnostics(flags.input);
  const std::vector<std::unique_ptr<Module>> modules = ReadModules(flags, &diagnostics);
  if (modules.size() != 2) return cli::kUsage;
  const Module &a = *modules[0], &b = *modules[1];
  const ModuleDiff diff = CompareModules(a, b, options);
  DiffSummary summary;
  if (flags.json || !diff.same()) summary = Summarize(a, b, diff);
  if (!flags.device.empty() && !AddSimulatedTime(flags, a, b, &diagnostics, &summary)) return cli::kUsage;
  flags.text.label_a = flags.files[0];
  flags.text.label_b = flags.files[1];
  flags.text.color =
      flags.color == "always" || (flags.color == "auto" && flags.output == "-" && isatty(STDOUT_FILENO) != 0);
  if (flags.summary) flags.text.max_instructions = 0;
  const bool written = cli::WriteOutputFile(flags.output, &diagnostics, [&](TextWriter& out) {
    if (flags.json) {
      WriteDiffJson(a, b, diff, summary, &out);
    } else {
      PrintDiff(out, a, b, diff, summary, flags.text);
    }
  });
  if (!written) return cli::kUsage;
  if (!flags.html.empty()) {
    std::string documents;
    {
      TextWriter out(&documents);
      JsonWriter json(&out, JsonLayout::kCompact);
      WriteDiffDocuments(a, b, diff, flags.files[0], flags.files[1], &json);
    }
    if (!cli::WriteViewPage(flags.html, documents, &diagnostics)) return cli::kUsage;
  }
  if (!diff.same()) diagnostics.Fail(cli::kRejected);
  return diagnostics.exit_code();
}

int Run(int argc, char** argv) {
  CLI::App app("compare two HLO modules instruction by instruction", std::string(kTool));
  Flags flags;
  app.add_option("FILE", flags.files, "the two modules; with --apply the first")->type_name("FILE")->required();
  app.add_option("--ignore", flags.ignore,
                 "differences that do not count, separated by commas: names (the default), metadata, layout, sharding, "
                 "frontend-attributes, operands, attributes, value, shape, opcode, moved; none: all count")
      ->type_name("WHAT")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--device", flags.device, "compare the simulated time on this device too, as in hlo-run")
      ->type_name("DEVICE");
  app.add_flag("--json", flags.json, "print JSON, which is a patch for --apply (docs/hlo-diff.md)");
  app.add_option("--html", flags.html, "write both graphs with their differences to this page too (docs/hlo-view.md)")
      ->type_name("FILE");
  CLI::Option* const apply =
      app.add_option("--apply", flags.apply, "print the second module from the first and this output of --json")
          ->type_name("FILE");
  app.add_flag("--summary", flags.summary, "print no instructions");
  cli::AddNumber(&app, "--max-instructions", &flags.text.max_instructions, "limit on the instructions that are listed")
      ->default_str("200");
  cli::AddNumber(&app, "--top", &flags.text.max_rows, "limit on the rows of each table")->default_str("10");
  app.add_option("--color", flags.color, "auto (on a terminal), always or never")
      ->type_name("auto|always|never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_option("-o,--output", flags.output, "output file; - is standard output")->type_name("FILE")->default_str("-");
  app.add_flag("--verify,!--no-verify", flags.verify, "verify the modules first (default on)");
  flags.input.AddFlags(&app);
  for (const char* const flag :
       {"--ignore", "--device", "--json", "--html", "--summary", "--max-instructions", "--top", "--color"}) {
    apply->excludes(app.get_option(flag));
  }
  app.footer(
      StrCat("Exit status:\n  0  the modules are the same\n  1  they differ\n"
             "  2  usage error, a module that cannot be read or is rejected, output that cannot be written\n"
             "  3  internal error\n\n",
             kExamples));
  if (const std::optional<int> exit_code = cli::ParseFlags(&app, argc, argv)) return *exit_code;
  flags.input.parse.verify_stablehlo = flags.verify;
  DiffOptions options;
  std::string error;
  if (!ParseIgnored(flags.ignore, &options.ignored, &error)) return cli::UsageError(kTool, error);
  if (!flags.apply.empty()) {
    if (flags.files.size() != 1) return cli::UsageError(kTool, "--apply: expected one module");
    return Apply(flags);
  }
  if (flags.files.size() != 2) {
    return cli::UsageError(kTool, StrCat("expected two modules, found ", flags.files.size()));
  }
  return Compare(flags, options);
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::cli::Main(hlokit::Run, argc, argv); }
