// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/dump_dir.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "io/dumps/dump_files.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/graph/module_statistics.h"
#include "passes/dumps/dump_stages.h"
#include "passes/dumps/dumped_module.h"
#include "passes/dumps/recompilations.h"
#include "tools/cli/text/regex.h"
#include "tools/hlo_inspect/assignment.h"
#include "tools/hlo_inspect/dump_search.h"

namespace hlokit::cli {
namespace {

using Kind = DumpFile::Kind;

struct DumpDirFlags : InspectFlags {
  std::string directory;
  std::string module;
  std::string diff;
  size_t top = 20;
  bool unchanged = false;
  bool list = false, values = false;
  std::string first;
  std::optional<std::string> tolerance;
  interp::EquivalenceOptions run;
  DiffTextOptions text;
};

// Returns "+3 fusion -5 add", the largest changes first, and of more than a line the number of the others.
std::string OpcodeChanges(const dump::OpcodeCounts& before, const dump::OpcodeCounts& after) {
  std::vector<std::pair<int64_t, std::string>> changes;
  dump::OpcodeCounts all = before;
  for (const auto& [opcode, count] : after) all[opcode];
  for (const auto& [opcode, count] : all) {
    const auto was = before.find(opcode), is = after.find(opcode);
    const int64_t change = (is == after.end() ? 0 : is->second) - (was == before.end() ? 0 : was->second);
    if (change != 0) changes.emplace_back(change, opcode);
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  constexpr size_t kMaxOpcodes = 8;
  std::string text;
  for (size_t k = 0; k < std::min(changes.size(), kMaxOpcodes); ++k) {
    const auto& [change, opcode] = changes[k];
    StrAppend(&text, k == 0 ? "" : " ", change > 0 ? "+" : "", change, " ", opcode);
  }
  if (changes.size() > kMaxOpcodes) StrAppend(&text, " and ", changes.size() - kMaxOpcodes, " opcodes more");
  return text;
}

// Returns what changed, as ": -1 constant; shape 2, layout 1"; "" if nothing did.
std::string Changes(const std::vector<dump::DumpStage>& stages, const dump::DumpStage& stage) {
  const dump::StageChange& change = *stage.change;
  std::string text = OpcodeChanges(stages[change.from].opcodes, stage.opcodes);
  std::string aspects;
  for (size_t k = 0; k < kAspects; ++k) {
    const Aspect aspect = static_cast<Aspect>(k);
    if (aspect == Aspect::kName || change.count_by_aspect[k] == 0) continue;
    StrAppend(&aspects, aspects.empty() ? "" : ", ", ToString(aspect), " ", change.count_by_aspect[k]);
  }
  if (change.changed > 0) StrAppend(&text, text.empty() ? "" : "; ", aspects);
  if (!change.header.empty()) StrAppend(&text, text.empty() ? "" : "; ", "header");
  return text.empty() ? "" : ": " + text;
}

void WriteStages(const DumpDirFlags& flags, const dump::DumpedModule& module, TextWriter* out) {
  if (module.stages.empty()) return;
  const bool timed = std::any_of(module.stages.begin(), module.stages.end(),
                                 [](const dump::DumpStage& stage) { return stage.microseconds >= 0; });
  *out << "  instructions   added  removed  changed" << (timed ? "        ms" : "") << "  stage\n";
  int64_t unchanged = 0;
  for (const dump::DumpStage& stage : module.stages) {
    if (stage.change && stage.change->same() && !flags.unchanged) {
      ++unchanged;
      continue;
    }
    if (stage.change) {
      *out << absl::StrFormat("  %12d %7d  %7d  %7d", stage.instructions, stage.change->added, stage.change->removed,
                              stage.change->changed);
    } else {
      *out << absl::StrFormat("  %12d %25s", stage.instructions, "");
    }
    if (stage.microseconds >= 0) {
      *out << absl::StrFormat(" %9.1f", static_cast<double>(stage.microseconds) * 1e-3);
    } else if (timed) {
      *out << absl::StrFormat(" %9s", "");
    }
    *out << "  " << stage.name;
    if (stage.change && !stage.change->of_one_pass) *out << " and passes before it";
    if (stage.change) *out << Changes(module.stages, stage);
    *out << "\n";
  }
  if (unchanged > 0) *out << "  and " << unchanged << " without changes (--unchanged)\n";
}

void WriteCounts(std::string_view title, const std::vector<std::pair<std::string, int64_t>>& counts, TextWriter* out) {
  *out << "  " << title;
  for (size_t n = title.size(); n < 12; ++n) *out << ' ';
  std::string_view separator = "";
  for (const auto& [name, count] : counts) *out << std::exchange(separator, ", ") << count << " " << name;
  *out << "\n";
}

void WriteAssignment(const dump::AssignmentSummary& summary, TextWriter* out) {
  *out << "  assignment  " << HumanBytes(summary.total_bytes);
  std::string_view separator = ": ";
  const auto part = [&](std::string_view name, int64_t bytes) {
    if (bytes > 0) *out << std::exchange(separator, ", ") << name << " " << HumanBytes(bytes);
  };
  part("parameters", summary.parameter_bytes);
  part("constants", summary.constant_bytes);
  part("results", summary.result_bytes);
  part("temporary", summary.temporary_bytes);
  if (summary.temporary_peak_bytes > 0) *out << ", at most " << HumanBytes(summary.temporary_peak_bytes) << " in use";
  *out << "; " << Counted(summary.blocks.size(), "block") << "\n";
}

void WritePasses(const xla::HloModuleMetadataProto& passes, TextWriter* out) {
  int64_t changed = 0, begin = 0, end = 0;
  for (const xla::HloPassMetadata& pass : passes.pass_metadata()) {
    changed += pass.module_changed();
    begin = begin == 0 ? pass.start_timestamp_usec() : std::min<int64_t>(begin, pass.start_timestamp_usec());
    end = std::max<int64_t>(end, pass.end_timestamp_usec());
  }
  *out << "  passes      " << static_cast<int64_t>(passes.pass_metadata_size()) << ", " << changed
       << " changed the module"
       << absl::StrFormat(", in %.1f ms\n", (static_cast<double>(end) - static_cast<double>(begin)) * 1e-3);
}

void WriteModule(const DumpDirFlags& flags, const dump::DumpedModule& module, TextWriter* out) {
  *out << module.id() << " " << module.name << "\n";
  dump::OpcodeCounts by_kind;
  for (const DumpFile* file : module.files) ++by_kind[std::string(file->description)];
  WriteCounts("files", {by_kind.begin(), by_kind.end()}, out);
  if (module.assignment) WriteAssignment(*module.assignment, out);
  if (!module.thunks.empty()) WriteCounts("thunks", module.thunks, out);
  for (const auto& [file, text] : module.snapshots) {
    *out << "  snapshot    " << file->rest << (text.empty() ? "" : ": ") << text << "\n";
  }
  if (module.passes) WritePasses(*module.passes, out);
  WriteStages(flags, module, out);
  std::vector<const DumpFile*> others;
  for (const DumpFile* file : module.files) {
    const auto is_file = [&](const dump::DumpStage& stage) { return stage.file == file; };
    const bool kernel =
        file->kind == Kind::kStablehlo && std::none_of(module.stages.begin(), module.stages.end(), is_file);
    if (file->kind == Kind::kOther || kernel) others.push_back(file);
  }
  if (others.empty()) return;
  *out << "         bytes  other files\n";
  for (size_t k = 0; k < std::min(others.size(), flags.top); ++k) {
    *out << absl::StrFormat("  %12d  %s: %s\n", others[k]->bytes, others[k]->description, others[k]->rest);
  }
  if (others.size() > flags.top) *out << "  ... " << static_cast<int64_t>(others.size() - flags.top) << " more\n";
}

void WriteDiffs(const std::vector<dump::DumpedModule>& modules, TextWriter* out) {
  bool first = true;
  for (const dump::DumpedModule& module : modules) {
    for (const dump::DumpStage& stage : module.stages) {
      if (!stage.change || stage.change->diff_text.empty()) continue;
      *out << (std::exchange(first, false) ? "" : "\n") << module.id() << " " << module.name << ": " << stage.name
           << (stage.change->of_one_pass ? "" : " and passes before it") << "\n"
           << stage.change->diff_text;
    }
  }
}

void WriteChangeJson(const dump::DumpedModule& module, const dump::StageChange& change, JsonWriter* json) {
  json->Key("change").BeginObject().Member("from", module.stages[change.from].file->path);
  json->Member("of_one_pass", change.of_one_pass).Member("added", change.added).Member("removed", change.removed);
  json->Member("changed", change.changed).Key("pairs_that_differ").BeginObject();
  for (size_t k = 0; k < kAspects; ++k) json->Member(ToString(static_cast<Aspect>(k)), change.count_by_aspect[k]);
  json->EndObject().Key("header").BeginArray();
  for (const std::string& line : change.header) json->Value(line);
  json->EndArray().Key("by_opcode").BeginArray();
  for (const DiffSummary::Row& row : change.by_opcode) {
    json->BeginObject().Member("key", row.key).Member("added", row.added).Member("removed", row.removed);
    json->Member("changed", row.changed).EndObject();
  }
  json->EndArray();
  if (!change.diff_text.empty()) json->Member("diff", change.diff_text);
  json->EndObject();
}

void WriteStageJson(const dump::DumpedModule& module, const dump::DumpStage& stage, JsonWriter* json) {
  json->BeginObject().Member("path", stage.file->path).Member("kind", stage.file->description);
  if (stage.file->kind == Kind::kPass) {
    json->Member("number", stage.file->pass_number).Member("pipeline", stage.file->pipeline);
    json->Member("pass", stage.file->pass).Member("next", stage.file->next);
  }
  if (stage.microseconds >= 0) json->Member("us", stage.microseconds);
  json->Member("instructions", stage.instructions).Key("opcodes").BeginObject();
  for (const auto& [opcode, count] : stage.opcodes) json->Member(opcode, count);
  json->EndObject();
  if (stage.change) WriteChangeJson(module, *stage.change, json);
  json->EndObject();
}

void WriteModuleJson(const dump::DumpedModule& module, JsonWriter* json) {
  json->BeginObject().Member("id", module.id()).Member("name", module.name).Key("files").BeginArray();
  for (const DumpFile* file : module.files) {
    json->BeginObject().Member("path", file->path).Member("kind", file->description);
    json->Member("bytes", file->bytes).EndObject();
  }
  json->EndArray();
  if (module.assignment) WriteAssignmentJson(*module.assignment, json);
  json->Key("thunks").BeginObject();
  for (const auto& [kind, count] : module.thunks) json->Member(kind, count);
  json->EndObject().Key("snapshots").BeginArray();
  for (const auto& [file, text] : module.snapshots) {
    json->BeginObject().Member("path", file->path).Member("values", text).EndObject();
  }
  json->EndArray().Key("passes").BeginArray();
  if (module.passes) {
    for (const xla::HloPassMetadata& pass : module.passes->pass_metadata()) {
      json->BeginObject().Member("pass", pass.pass_name()).Member("pipeline", pass.pipeline_name());
      json->Member("changed", pass.module_changed());
      json->Member("start_us", pass.start_timestamp_usec()).Member("end_us", pass.end_timestamp_usec()).EndObject();
    }
  }
  json->EndArray().Key("stages").BeginArray();
  for (const dump::DumpStage& stage : module.stages) WriteStageJson(module, stage, json);
  json->EndArray().EndObject();
}

bool IsIn(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Keeps the modules that --module names. Returns false after an error.
bool SelectModules(const DumpDirFlags& flags, std::vector<dump::DumpedModule>* modules,
                   DiagnosticReporter* diagnostics) {
  if (flags.module.empty()) return true;
  std::vector<dump::DumpedModule> selected;
  std::vector<std::string> names;
  for (dump::DumpedModule& module : *modules) {
    names.push_back(dump::CommonName(module.files));
    const DumpFile& first = *module.files.front();
    if (flags.module == names.back() || flags.module == first.module || flags.module == StrCat(first.number)) {
      selected.push_back(std::move(module));
    }
  }
  *modules = std::move(selected);
  if (!modules->empty()) return true;
  diagnostics->ShowError(
      flags.directory,
      StrCat("--module: no `", flags.module, "`", DidYouMeanSuffix(flags.module, {names.begin(), names.end()})),
      kUsage);
  return false;
}

bool CheckDiffName(const DumpDirFlags& flags, const std::vector<dump::DumpedModule>& modules,
                   DiagnosticReporter* diagnostics) {
  if (flags.diff.empty()) return true;
  std::vector<std::string> known;
  for (const dump::DumpedModule& module : modules) {
    for (const DumpFile* file : module.files) {
      std::vector<std::string> names = dump::StageNames(*file);
      if (IsIn(names, flags.diff)) return true;
      if (!names.empty() && !IsIn(known, names.front())) known.push_back(std::move(names.front()));
    }
  }
  diagnostics->ShowError(
      flags.directory,
      StrCat("--diff: no pass `", flags.diff, "`", DidYouMeanSuffix(flags.diff, {known.begin(), known.end()})), kUsage);
  return false;
}

void WriteRecompilations(const std::vector<dump::Recompilations>& recompilations, TextWriter* out) {
  for (const dump::Recompilations& module : recompilations) {
    *out << module.name << " was compiled " << static_cast<int64_t>(module.count) << " times\n";
    for (const dump::Recompilations::Comparison& c : module.compared) {
      *out << "  " << c.after << (c.difference.empty() ? " is the same program as " : " differs first from ")
           << c.before;
      if (!c.difference.empty()) *out << " at " << c.difference;
      *out << "\n";
    }
    if (module.left_out > 0) *out << "  ... " << static_cast<int64_t>(module.left_out) << " more\n";
  }
}

// Reads files as inputs of the tool.
class InputReader : public dump::DumpReader {
 public:
  explicit InputReader(DiagnosticReporter* diagnostics) : diagnostics_(*diagnostics) {}

  std::shared_ptr<const SourceBuffer> Read(const std::string& path) override {
    const std::vector<InputPart> parts = diagnostics_.Read(path);
    return parts.size() == 1 ? parts[0].source : nullptr;
  }
  std::unique_ptr<Module> Parse(std::shared_ptr<const SourceBuffer> source, std::shared_ptr<Context> context) override {
    const std::string_view text = source->text();
    return diagnostics_.Parse({std::move(source), text}, std::move(context));
  }
  void Report(const DiagnosticSink& sink, const SourceBuffer& source) override { diagnostics_.Show(sink, source); }
  void ReportError(std::string_view where, std::string_view message) override {
    diagnostics_.ShowError(where, message, kRejected);
  }

 private:
  DiagnosticReporter& diagnostics_;
};

// Answers --list, --first and --values. Returns nothing if none is given.
std::optional<int> Search(const DumpDirFlags& flags, const std::vector<dump::DumpedModule>& modules,
                          InputReader* reader, DiagnosticReporter* diagnostics) {
  if (flags.list) {
    const std::vector<ListedModule> listed = ListStages(modules);
    return WriteReport(flags, diagnostics, [&](TextWriter& out) { WriteListing(listed, flags.json, &out); });
  }
  if (!flags.first.empty()) {
    const auto matches = CompileRegex(flags.first);
    if (!matches.ok()) return UsageError("hlo-inspect", StrCat("--first: ", std::string(matches.status().message())));
    const std::vector<DumpMatch> found = FindFirst(modules, *matches, reader);
    if (found.empty()) diagnostics->Fail(kRejected);
    return WriteReport(flags, diagnostics,
                       [&](TextWriter& out) { WriteMatches(found, modules.size(), flags.json, &out); });
  }
  if (!flags.values) return std::nullopt;
  constexpr double kError = 1e-4;  // XLA's passes change the order of sums
  interp::Tolerance tolerance = interp::Tolerance::OfPass(kError);
  if (flags.tolerance) {
    const absl::StatusOr<interp::Tolerance> given = interp::Tolerance::Parse(*flags.tolerance);
    if (!given.ok()) return UsageError("hlo-inspect", StrCat("--tolerance: ", std::string(given.status().message())));
    tolerance = *given;
  }
  std::vector<ModuleValues> values;
  bool ran = false;
  for (const dump::DumpedModule& module : modules) {
    values.push_back({&module, CompareStages(module, flags.run, tolerance, reader)});
    for (const StageValues& stage : values.back().stages) {
      if (stage.outcome == StageValues::Outcome::kDiffers) diagnostics->Fail(kRejected);
      ran |= stage.outcome != StageValues::Outcome::kNotRun;
    }
  }
  if (!ran) diagnostics->ShowError(flags.directory, "no stage of a module ran: nothing is compared", kRejected);
  return WriteReport(flags, diagnostics, [&](TextWriter& out) { WriteValues(values, flags.json, &out); });
}

int Run(const DumpDirFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  const absl::StatusOr<DumpListing> listing = ListDumpFiles(flags.directory);
  if (!listing.ok()) {
    diagnostics.ShowError("", std::string(listing.status().message()), kUsage);
    return diagnostics.exit_code();
  }
  if (listing->files.empty()) {
    diagnostics.ShowError(flags.directory, "no files of a dump: their names are module_NNNN.NAME....", kRejected);
    return diagnostics.exit_code();
  }
  std::vector<dump::DumpedModule> modules = dump::GroupFiles(listing->files);
  if (!SelectModules(flags, &modules, &diagnostics) || !CheckDiffName(flags, modules, &diagnostics)) {
    return diagnostics.exit_code();
  }
  dump::StageOptions options;
  options.parse = flags.input.parse;
  options.max_bytes = flags.input.max_bytes;
  options.shows_diff = [&](const DumpFile& file) {
    return !flags.diff.empty() && IsIn(dump::StageNames(file), flags.diff);
  };
  options.only_diffs = !flags.diff.empty() && !flags.json;
  options.text = flags.text;
  InputReader reader(&diagnostics);
  if (const std::optional<int> code = Search(flags, modules, &reader, &diagnostics)) return *code;
  for (dump::DumpedModule& module : modules) ReadDumpFiles(options, &module, &reader);
  const auto has_diff = [](const dump::DumpedModule& module) {
    return std::any_of(module.stages.begin(), module.stages.end(),
                       [](const dump::DumpStage& stage) { return stage.change && !stage.change->diff_text.empty(); });
  };
  if (!flags.diff.empty() && std::none_of(modules.begin(), modules.end(), has_diff)) {
    diagnostics.ShowError(flags.directory,
                          StrCat("--diff: no module before `", flags.diff,
                                 "` to compare with: dump with "
                                 "--xla_dump_hlo_pass_re=.*"),
                          kRejected);
    return diagnostics.exit_code();
  }
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    if (flags.json) {
      JsonWriter json(&out);
      json.BeginArray();
      for (const dump::DumpedModule& module : modules) WriteModuleJson(module, &json);
      json.EndArray();
    } else if (!flags.diff.empty()) {
      WriteDiffs(modules, &out);
    } else {
      for (const dump::DumpedModule& module : modules) WriteModule(flags, module, &out);
      WriteRecompilations(dump::FindRecompilations(modules, options), &out);
      if (listing->others > 0) {
        out << listing->others << (listing->others == 1 ? " file has" : " files have") << " no name of a dump\n";
      }
    }
  });
}

}  // namespace

InspectCommand AddDumpDirCommand(CLI::App* app) {
  auto flags = std::make_shared<DumpDirFlags>();
  CLI::App* command = app->add_subcommand(
      "dump-dir", "show a folder of XLA's dumps: modules, what each pass changed, buffer assignments, thunks");
  command->add_option("DIR", flags->directory, "the folder of --xla_dump_to")->type_name("DIR")->required();
  command->add_option("--module", flags->module, "show this module alone, by name or number")->type_name("MODULE");
  command
      ->add_option("--diff", flags->diff,
                   "print what this pass changed, instruction by instruction as hlo-diff does: its name, "
                   "PIPELINE/PASS, its number, or after_optimizations")
      ->type_name("PASS");
  AddNumber(command, "--max-instructions", &flags->text.max_instructions, "limit on the instructions that --diff lists")
      ->default_str("200");
  AddNumber(command, "--top", &flags->top, "limit on the other files that are listed")->default_str("20");
  command->add_flag("--unchanged", flags->unchanged, "show stages too that are equal to the one before");
  CLI::Option* const list = command->add_flag(
      "--list", flags->list, "names of modules and stages, their bytes and when they were written; no file is opened");
  CLI::Option* const first =
      command
          ->add_option(
              "--first", flags->first,
              "the first stage of each module, and the last, whose text has a line that the expression matches")
          ->type_name("REGEX")
          ->excludes(list);
  CLI::Option* const values =
      command
          ->add_flag("--values", flags->values,
                     "run each stage on the same random arguments, and say after which pass results differ")
          ->excludes(list)
          ->excludes(first);
  command
      ->add_option("--tolerance", flags->tolerance,
                   "of --values: as hlo-opt --run-tolerance; by default a few units in the last place, and 1e-4 of the "
                   "largest value")
      ->type_name("SPEC")
      ->needs(values);
  AddNumber(command, "--seed", &flags->run.seed, "of --values: seed of the arguments", 0)
      ->needs(values)
      ->default_str("0");
  AddNumber(command, "--inputs", &flags->run.inputs, "of --values: number of sets of arguments", 1)
      ->needs(values)
      ->default_str("1");
  command->add_flag("--json", flags->json, "print JSON");
  command->add_option("-o,--output", flags->output, "output file; - is standard output")
      ->type_name("FILE")
      ->default_str("-");
  flags->input.AddFlags(command);
  command->footer(
      "Notes:\n"
      "  Modules after each pass are there with --xla_dump_hlo_pass_re=.*\n"
      "  Counts are of instructions, by the matching of hlo-diff, which ignores names.\n\n"
      "Examples:\n"
      "  XLA_FLAGS='--xla_dump_to=dump --xla_dump_hlo_pass_re=.*' python3 train.py\n"
      "  hlo-inspect dump-dir dump\n"
      "  hlo-inspect dump-dir --list dump\n"
      "  hlo-inspect dump-dir --module=jit_step --diff=algsimp dump\n"
      "  hlo-inspect dump-dir --first=' all-gather\\(' dump\n"
      "  hlo-inspect dump-dir --module=jit_step --values --tolerance=1e-3 dump\n"
      "  hlo-inspect dump-dir --json dump | jq '.[].stages[] | {pass, change}'");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace hlokit::cli
