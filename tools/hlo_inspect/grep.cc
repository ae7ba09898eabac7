// SPDX-License-Identifier: Apache-2.0
// Files are read, parsed and searched on all cores; results are printed in the order of the files, and no more than a
// few files per thread are in memory at a time.
#include "tools/hlo_inspect/grep.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io/files/read_file.h"
#include "ir/core/str_cat.h"
#include "ir/core/thread_group.h"
#include "ir/verify/verifier.h"
#include "parser/formats/module_formats.h"
#include "tools/cli/dump_files.h"
#include "tools/hlo_inspect/dump_stages.h"
#include "tools/hlo_inspect/query.h"

namespace hlokit::cli {
namespace {

struct GrepFlags : InspectFlags {
  std::string pattern, where, stage = "all";
  bool count = false;
  size_t threads = 0;
};

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

// Returns true if a file of a dump is one of the stage that the flag names.
bool IsOfStage(const std::string& stage, const DumpFile& file) {
  if (stage == "before") return file.kind == DumpFile::Kind::kBeforeOptimizations;
  if (stage == "after") return file.kind == DumpFile::Kind::kAfterOptimizations;
  return true;
}

constexpr size_t kMlirBeginning = size_t{64} << 10;  // has the main function, or operations of it

// Returns the beginning of a file; less where it ends, or cannot be read.
std::string BeginningOf(const std::string& path, size_t bytes) {
  std::string text(bytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(bytes));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

bool BeginsAsModule(const std::string& path) {
  constexpr std::string_view kModule = "HloModule";
  return BeginningOf(path, kModule.size()) == kModule;
}

bool IsText(std::string_view path) {
  return path.ends_with(".txt") || path.ends_with(".pbtxt") || path.ends_with(".textproto");
}

// What there is in folders of dumps.
struct DumpedModules {
  std::set<std::string> staged;    // FOLDER/module_NNNN with HLO of a stage
  std::set<std::string> before;    // FOLDER/module_NNNN.NAME and FOLDER/NAME with HLO before optimizations
  std::set<std::string> compiled;  // folders with what one module was compiled from, module.mlir, and with
};

DumpedModules ModulesAmong(const std::vector<std::string>& files) {
  DumpedModules modules;
  for (const std::string& path : files) {
    const std::filesystem::path name(path);
    const std::string folder = name.parent_path().string();
    DumpFile file;
    if (name.filename().string().starts_with("compile_options.")) modules.compiled.insert(folder);
    if (!ParseDumpName(name.filename().string(), &file)) continue;
    if (!IsStage(file.kind) || file.kind == DumpFile::Kind::kStablehlo) continue;
    modules.staged.insert(StrCat(folder, "/", file.module));
    constexpr std::string_view kBefore = ".before_optimizations";
    if (!file.stage.ends_with(kBefore)) continue;
    const std::string module = file.stage.substr(0, file.stage.size() - kBefore.size());
    modules.before.insert(StrCat(folder, "/", file.module, ".", module));
    modules.before.insert(StrCat(folder, "/", module));
  }
  return modules;
}

// Returns true for a file in a folder of what a module was compiled from and with, called module_NNNN.NAME or
// NAME_TIME, that is no module, or one of which there is a dump of the stage.
bool IsLeftOutOfCompiled(const GrepFlags& flags, const DumpedModules& modules, const std::filesystem::path& path) {
  const std::string folder = path.parent_path().string(), name = path.filename().string();
  if (!modules.compiled.contains(folder)) return false;
  if (name != "module.mlir") return name.starts_with("compile_options.") || name.starts_with("topology.");
  const size_t time = folder.find_last_not_of("0123456789");
  return flags.stage == "after" || modules.before.contains(folder) ||
         (time != std::string::npos && folder[time] == '_' && modules.before.contains(folder.substr(0, time)));
}

// Returns true for a file of a dump without a module, or with one of another stage or that is in other files.
bool IsLeftOut(const GrepFlags& flags, const DumpedModules& modules, const std::string& folder, const DumpFile& file,
               const std::string& path) {
  if (IsKnownSideFile(file)) return true;
  if (file.kind == DumpFile::Kind::kSnapshot) return modules.staged.contains(StrCat(folder, "/", file.module));
  if (IsStage(file.kind) && !IsOfStage(flags.stage, file)) return true;
  if (file.kind == DumpFile::Kind::kStablehlo) return !IsStablehloDump(BeginningOf(path, kMlirBeginning));
  // Texts beside a module are of many kinds.
  return file.kind == DumpFile::Kind::kOther && IsText(path) && (flags.stage != "all" || !BeginsAsModule(path));
}

// Keeps of the files of dumps those with modules, of the stage of the flag, and one form of each.
std::vector<std::string> ModulesOfDumps(const GrepFlags& flags, const std::vector<std::string>& files) {
  std::vector<std::string> kept;
  std::set<std::string> stages;
  const DumpedModules modules = ModulesAmong(files);
  for (const std::string& path : files) {
    const std::filesystem::path name(path);
    const std::string folder = name.parent_path().string();
    if (IsLeftOutOfCompiled(flags, modules, name)) continue;
    DumpFile file;
    if (ParseDumpName(name.filename().string(), &file)) {
      if (IsLeftOut(flags, modules, folder, file, path)) continue;
      if (file.kind == DumpFile::Kind::kOther && IsText(path)) {  // a stage whose name tells nothing
        file.kind = DumpFile::Kind::kStage;
        file.stage = file.rest.substr(0, file.rest.rfind('.'));
      }
      const std::string stage = StrCat(folder, "/", file.module, ".", file.stage, " ", static_cast<int>(file.kind));
      if (IsStage(file.kind) && !stages.insert(stage).second) continue;
    }
    kept.push_back(path);
  }
  return kept;
}

// Replaces directories by the files in them, at any depth, whose suffix is that of a format of modules, sorted.
std::vector<std::string> FilesOf(const GrepFlags& flags) {
  std::vector<std::string> files;
  for (const std::string& path : flags.files) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    using Iterator = std::filesystem::recursive_directory_iterator;
    const auto options = std::filesystem::directory_options::skip_permission_denied;
    for (Iterator at(path, options, error), end; !error && at != end; at.increment(error)) {
      const std::string inner = at->path().string();
      if (ModuleFormatOfPath(inner) != nullptr && at->is_regular_file(error)) inside.push_back(inner);
    }
    std::sort(inside.begin(), inside.end());
    inside = ModulesOfDumps(flags, inside);
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

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

// Calls `use(result)` for each file in order, while threads search further ones.
template <typename Use>
void SearchFiles(const GrepFlags& flags, const query::Query& query, const std::vector<std::string>& files, Use use) {
  const size_t wanted = flags.threads > 0 ? flags.threads : std::max(1u, std::thread::hardware_concurrency());
  const size_t count = std::min(wanted, files.size());
  if (count <= 1) {
    for (const std::string& file : files) use(SearchFile(flags, query, file));
    return;
  }
  constexpr size_t kAhead = 4;  // files per thread that wait to be printed
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::unique_ptr<FileResult>> results(files.size());
  size_t next = 0, used = 0;
  bool failed = false;
  const auto work = [&] {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return failed || next == files.size() || next < used + kAhead * count; });
      if (failed || next == files.size()) return;
      const size_t mine = next++;
      lock.unlock();
      std::unique_ptr<FileResult> result;
      try {
        result = std::make_unique<FileResult>(SearchFile(flags, query, files[mine]));
      } catch (...) {
        lock.lock();
        failed = true;  // there is no memory for it; Join throws that
        changed.notify_all();
        throw;
      }
      lock.lock();
      results[mine] = std::move(result);
      changed.notify_all();
    }
  };
  ThreadGroup threads;
  for (size_t t = 0; t < count; ++t) {
    if (!threads.Start(work)) break;  // those that there are search all
  }
  if (threads.size() == 0) {
    for (const std::string& file : files) use(SearchFile(flags, query, file));
    return;
  }
  for (size_t k = 0; k < files.size(); ++k) {
    std::unique_ptr<FileResult> result;
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return results[k] != nullptr || failed; });
      if (results[k] == nullptr) break;
      result = std::move(results[k]);
      ++used;
      changed.notify_all();
    }
    use(*result);
  }
  threads.Join();
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
  *out << matches << (matches == 1 ? " match" : " matches") << " among " << instructions << " instructions, in " << with
       << " of " << static_cast<int64_t>(totals.size()) << (totals.size() == 1 ? " file\n" : " files\n");
}

int Run(const GrepFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  const std::optional<query::Query> query = ParseQuery(flags.pattern, flags.where, &diagnostics);
  if (!query) return diagnostics.exit_code();
  const std::vector<std::string> files = FilesOf(flags);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    std::vector<Total> totals;
    SearchFiles(flags, *query, files, [&](const FileResult& result) {
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
      ->add_option("--stage", flags->stage,
                   "of directories with XLA's dumps: modules before or after its optimizations, or all stages, each of "
                   "which counts")
      ->check(CLI::IsMember({"all", "before", "after"}))
      ->capture_default_str();
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
