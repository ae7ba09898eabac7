// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/grep.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "io/dumps/module_files.h"
#include "io/files/read_file.h"
#include "ir/core/ordered_work.h"
#include "ir/core/str_cat.h"
#include "ir/verify/verifier.h"
#include "tools/hlo_inspect/query.h"

namespace hlokit::cli {
namespace {

struct GrepFlags : InspectFlags {
  std::string pattern, where;
  DumpedStages stage = DumpedStages::kAll;
  bool count = false;
  size_t threads = 0;
};

const std::map<std::string, DumpedStages> kStages = {
    {"all", DumpedStages::kAll}, {"before", DumpedStages::kBefore}, {"after", DumpedStages::kAfter}};

struct Total {
  std::string file;
  int64_t matches = 0;
  int64_t instructions = 0;
};

struct FileResult {
  absl::Status read;
  std::shared_ptr<const SourceBuffer> source;
  DiagnosticSink sink;
  std::string text;  // lines, or the JSON objects
  Total total;
};

void Search(const GrepFlags& flags, const query::Query& query, const InputPart& part, FileResult* result) {
  const std::unique_ptr<Module> module = ParseModulePart(part.source, part.text, flags.input.parse, &result->sink);
  if (module == nullptr) return;
  if (flags.verify) {
    const size_t errors = result->sink.error_count();
    VerifyModule(*module, {}, &result->sink);
    if (result->sink.error_count() > errors) return;
  }
  const std::vector<query::Match> matches = query.Find(*module);
  result->total.matches += static_cast<int64_t>(matches.size());
  result->total.instructions += static_cast<int64_t>(module->instruction_count());
  if (flags.count || matches.empty()) return;
  const TextLines lines(part.source->text());
  TextWriter out(&result->text);
  for (const query::Match& match : matches) {
    if (!flags.json) {
      out << LineOf(part, lines, match.root) << "\n";
      continue;
    }
    JsonWriter json(&out, JsonLayout::kSpaced);
    json.BeginObject().Member("file", part.source->name());
    if (part.count > 1) json.Member("group", part.index + 1);
    WriteMembers(lines, match.root, &json);
    json.EndObject();
    out << "\n";
  }
}

FileResult SearchFile(const GrepFlags& flags, const query::Query& query, const std::string& path) {
  FileResult result;
  result.total.file = path;
  absl::StatusOr<std::shared_ptr<const SourceBuffer>> source =
      ReadFile(path, flags.input.max_bytes, FileContents::kModule);
  if (!source.ok()) {
    result.read = source.status();
    return result;
  }
  result.source = *source;
  if (!flags.input.split_input_file) {
    Search(flags, query, {*source, (*source)->text()}, &result);
    return result;
  }
  const SplitInput split = SplitInputFile(**source);
  result.source = split.source;
  for (size_t i = 0; i < split.chunks.size(); ++i) {
    Search(flags, query, {split.source, split.chunks[i], i, split.chunks.size()}, &result);
  }
  return result;
}

void WriteTotals(const GrepFlags& flags, const std::vector<Total>& totals, TextWriter* out) {
  int64_t matches = 0, instructions = 0, with = 0;
  for (const Total& total : totals) {
    matches += total.matches;
    instructions += total.instructions;
    with += total.matches > 0;
  }
  if (flags.json) {
    JsonWriter json(out, JsonLayout::kSpaced);
    json.BeginObject().Key("totals").BeginArray();
    for (const Total& total : totals) {
      if (total.matches == 0) continue;
      json.BeginObject().Member("file", total.file).Member("matches", total.matches);
      json.Member("instructions", total.instructions).EndObject();
    }
    json.EndArray().Member("files", totals.size()).Member("files_with_matches", with).Member("matches", matches);
    json.Member("instructions", instructions).EndObject();
    *out << "\n";
    return;
  }
  for (const Total& total : totals) {
    if (total.matches > 0) *out << total.file << ": " << total.matches << "\n";
  }
  *out << Counted(matches, "match", "matches") << " among " << instructions << " instructions, in " << with << " of "
       << Counted(totals.size(), "file") << "\n";
}

int Run(const GrepFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  const std::optional<query::Query> query = ParseQuery(flags.pattern, flags.where, &diagnostics);
  if (!query) return diagnostics.exit_code();
  const std::vector<std::string> files = FindModuleFiles(flags.files, flags.stage);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    std::vector<Total> totals;
    const auto search = [&](size_t k) { return SearchFile(flags, *query, files[k]); };
    WorkInOrder(files.size(), flags.threads, search, [&](const FileResult& result) {
      if (!result.read.ok()) {
        const bool large = absl::IsResourceExhausted(result.read);
        diagnostics.ShowError("", std::string(result.read.message()), large ? kRejected : kUsage);
        return;
      }
      diagnostics.Show(result.sink, *result.source);
      out << result.text;
      totals.push_back(result.total);
    });
    WriteTotals(flags, totals, &out);
  });
}

}  // namespace

InspectCommand AddGrepCommand(CLI::App* app) {
  auto flags = std::make_shared<GrepFlags>();
  CLI::App* command = app->add_subcommand("grep", "find instructions in many files at once, and count them by file");
  AddQueryFlags(command, &flags->pattern, &flags->where);
  flags->AddTo(command);
  command->add_flag("--count", flags->count, "only the totals");
  command
      ->add_option_function<std::string>(
          "--stage", [flags](const std::string& name) { flags->stage = kStages.at(name); },
          "of directories with XLA's dumps: modules before or after its optimizations, or all stages, each of "
          "which counts")
      ->check(CLI::IsMember({"all", "before", "after"}))
      ->default_str("all");
  AddNumber(command, "--num-threads", &flags->threads, "number of threads; 0: one for each core", 0, 1024)
      ->default_str("0");
  command->footer(
      "Notes:\n"
      "  Of directories, the files with suffixes of modules; of XLA's dumps one form of\n"
      "  each stage, and no reports. Matches\n"
      "  come in the order of the files, while further files are searched. With\n"
      "  --json each match is an object on a line of its own, and the last line has\n"
      "  the totals. `find --help` explains patterns and conditions.\n\n"
      "Examples:\n"
      "  hlo-inspect grep 'all-gather*' --where='bytes>64MiB' --stage=before dumps/\n"
      "  hlo-inspect grep --count 'transpose(transpose)' a/*.hlo b/*.hlo");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace hlokit::cli
