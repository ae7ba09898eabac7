// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/dump_dir.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "parser/files/read_file.h"
#include "parser/proto/proto_file.h"

namespace hlokit::cli {
namespace {

struct DumpDirFlags : InspectFlags {
  std::string directory;
  bool unchanged = false;
};

using OpcodeCounts = std::map<std::string, int64_t, std::less<>>;

// A module at one place of the compilation.
struct Stage {
  const DumpFile* file = nullptr;
  int64_t instructions = 0;
  OpcodeCounts opcodes;
};

struct DumpedModule {
  std::string name;
  std::vector<const DumpFile*> files;
  std::vector<Stage> stages;                            // in the order of the compilation
  std::vector<std::pair<std::string, int64_t>> thunks;  // by kind, the most frequent first
  std::string assignment_total;                         // as in the buffer assignment
  std::optional<xla::HloModuleMetadataProto> passes;
};

std::vector<std::string_view> Words(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

bool IsNumber(std::string_view s, size_t digits, int64_t* number) {
  if (s.size() < digits) return false;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), *number);
  return error == std::errc() && end == s.data() + s.size();
}

DumpFile::Kind KindOf(std::string_view rest) {
  const auto ends = [rest](std::string_view suffix) { return rest.ends_with(suffix); };
  const auto has = [rest](std::string_view part) { return rest.find(part) != std::string_view::npos; };
  if (ends("buffer-assignment.txt") || ends("buffer_assignment.txt")) return DumpFile::Kind::kBufferAssignment;
  if (ends("thunk_sequence.txt") || ends("thunk-sequence.txt")) return DumpFile::Kind::kThunkSequence;
  if (ends("metadata.textproto")) return DumpFile::Kind::kPassTimes;
  if (has("snapshot")) return DumpFile::Kind::kSnapshot;
  if (ends("before_optimizations.txt") || ends("before_optimizations.hlo")) return DumpFile::Kind::kBeforeOptimizations;
  if (ends("after_optimizations.txt") || ends("after_optimizations.hlo")) return DumpFile::Kind::kAfterOptimizations;
  if (ends(".hlo.pb") || ends(".hlo.pb.gz") || ends(".hlo_proto.pb") || ends(".hlo_module.pb")) {
    return DumpFile::Kind::kProto;
  }
  return DumpFile::Kind::kOther;
}

std::string_view NameOf(DumpFile::Kind kind) {
  switch (kind) {
    case DumpFile::Kind::kBeforeOptimizations:
      return "before optimizations";
    case DumpFile::Kind::kPass:
      return "pass";
    case DumpFile::Kind::kAfterOptimizations:
      return "after optimizations";
    case DumpFile::Kind::kProto:
      return "proto";
    case DumpFile::Kind::kSnapshot:
      return "snapshot";
    case DumpFile::Kind::kBufferAssignment:
      return "buffer assignment";
    case DumpFile::Kind::kThunkSequence:
      return "thunk sequence";
    case DumpFile::Kind::kPassTimes:
      return "pass times";
    case DumpFile::Kind::kOther:
      return "other";
  }
  return "";
}

// The words that all files of a module have in common after its number; of one file the first.
std::string ModuleName(const std::vector<const DumpFile*>& files) {
  std::vector<std::string_view> common = Words(files.front()->rest, '.');
  if (files.size() == 1) common.resize(1);
  for (const DumpFile* file : files) {
    const std::vector<std::string_view> words = Words(file->rest, '.');
    size_t same = 0;
    while (same < common.size() && same < words.size() && common[same] == words[same]) ++same;
    common.resize(std::max<size_t>(same, 1));
  }
  std::string name;
  for (std::string_view word : common) StrAppend(&name, name.empty() ? "" : ".", word);
  return name;
}

std::vector<DumpFile> ListDump(const std::string& directory, DiagnosticReporter* diagnostics) {
  std::vector<DumpFile> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    DumpFile file;
    if (!ParseDumpName(at->path().filename().string(), &file)) continue;
    file.path = at->path().string();
    files.push_back(std::move(file));
  }
  if (error) diagnostics->ShowError(directory, error.message(), kUsage);
  std::sort(files.begin(), files.end(), [](const DumpFile& a, const DumpFile& b) { return a.path < b.path; });
  return files;
}

std::string ReadText(const DumpFile& file, const InputOptions& input, DiagnosticReporter* diagnostics) {
  const absl::StatusOr<std::shared_ptr<const SourceBuffer>> source = ReadFile(file.path, input.max_bytes);
  if (source.ok()) return std::string((*source)->text());
  diagnostics->ShowError("", std::string(source.status().message()), kRejected);
  return "";
}

std::optional<Stage> ReadStage(const DumpFile& file, DiagnosticReporter* diagnostics) {
  Stage stage;
  stage.file = &file;
  for (const InputPart& part : diagnostics->Read(file.path)) {
    const std::unique_ptr<Module> module = diagnostics->Parse(part);
    if (module == nullptr) return std::nullopt;
    for (Computation c : module->computations()) {
      for (Instruction i : c.instructions()) {
        ++stage.instructions;
        ++stage.opcodes[std::string(i.opcode_text())];
      }
    }
  }
  return stage;
}

// Lines of a thunk sequence begin with a number and a colon, then the kind: `003: kKernel ...`.
std::vector<std::pair<std::string, int64_t>> CountThunks(std::string_view text) {
  OpcodeCounts counts;
  for (std::string_view line : Words(text, '\n')) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const size_t colon = line.find(':');
    int64_t number;
    if (colon == std::string_view::npos || !IsNumber(line.substr(0, colon), 1, &number)) continue;
    line.remove_prefix(colon + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const std::string_view kind = line.substr(0, line.find_first_of(" \t\r,("));
    if (!kind.empty()) ++counts[std::string(kind)];
  }
  std::vector<std::pair<std::string, int64_t>> thunks(counts.begin(), counts.end());
  std::stable_sort(thunks.begin(), thunks.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return thunks;
}

// The line of a buffer assignment with the sum, `Total bytes used: 1234 (1.2KiB)`.
std::string AssignmentTotal(std::string_view text) {
  constexpr std::string_view kTotal = "Total bytes used:";
  const size_t at = text.find(kTotal);
  if (at == std::string_view::npos) return "";
  std::string_view line = text.substr(at + kTotal.size());
  line = line.substr(0, line.find('\n'));
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return std::string(line);
}

void ReadModuleFiles(const InputOptions& input, DumpedModule* module, DiagnosticReporter* diagnostics) {
  std::vector<const DumpFile*> ordered = module->files;
  std::stable_sort(ordered.begin(), ordered.end(), [](const DumpFile* a, const DumpFile* b) {
    return std::pair(a->kind, a->pass_number) < std::pair(b->kind, b->pass_number);
  });
  for (const DumpFile* file : ordered) {
    switch (file->kind) {
      case DumpFile::Kind::kBeforeOptimizations:
      case DumpFile::Kind::kPass:
      case DumpFile::Kind::kAfterOptimizations:
        if (std::optional<Stage> stage = ReadStage(*file, diagnostics)) module->stages.push_back(*std::move(stage));
        break;
      case DumpFile::Kind::kThunkSequence:
        module->thunks = CountThunks(ReadText(*file, input, diagnostics));
        break;
      case DumpFile::Kind::kBufferAssignment:
        module->assignment_total = AssignmentTotal(ReadText(*file, input, diagnostics));
        break;
      case DumpFile::Kind::kPassTimes: {
        xla::HloModuleMetadataProto passes;
        const absl::Status status = ParseAnyEncoding(ReadText(*file, input, diagnostics), &passes);
        if (status.ok()) {
          module->passes = std::move(passes);
        } else {
          diagnostics->ShowError(file->path, std::string(status.message()), kRejected);
        }
        break;
      }
      case DumpFile::Kind::kProto:
      case DumpFile::Kind::kSnapshot:
      case DumpFile::Kind::kOther:
        break;
    }
  }
}

// Returns "+3 fusion -5 add", the largest changes first.
std::string Changes(const OpcodeCounts& before, const OpcodeCounts& after) {
  std::vector<std::pair<int64_t, std::string>> changes;
  OpcodeCounts all = before;
  for (const auto& [opcode, count] : after) all[opcode];
  for (const auto& [opcode, count] : all) {
    const auto was = before.find(opcode), is = after.find(opcode);
    const int64_t change = (is == after.end() ? 0 : is->second) - (was == before.end() ? 0 : was->second);
    if (change != 0) changes.emplace_back(change, opcode);
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  std::string text;
  for (const auto& [change, opcode] : changes) {
    StrAppend(&text, text.empty() ? "" : " ", change > 0 ? "+" : "", change, " ", opcode);
  }
  return text;
}

std::string StageName(const DumpFile& file) {
  if (file.kind != DumpFile::Kind::kPass) return std::string(NameOf(file.kind));
  return StrCat(file.pass_number, " ", file.pipeline, "/", file.pass);
}

void WriteText(const DumpDirFlags& flags, const std::vector<DumpedModule>& modules, TextWriter* out) {
  for (const DumpedModule& module : modules) {
    *out << module.files.front()->module << " " << module.name << "\n";
    OpcodeCounts files;
    for (const DumpFile* file : module.files) ++files[std::string(NameOf(file->kind))];
    *out << "  files       ";
    std::string_view separator = "";
    for (const auto& [kind, count] : files) {
      *out << separator << count << " " << kind;
      separator = ", ";
    }
    *out << "\n";
    if (!module.assignment_total.empty()) *out << "  assignment  " << module.assignment_total << "\n";
    if (!module.thunks.empty()) {
      *out << "  thunks      ";
      separator = "";
      for (const auto& [kind, count] : module.thunks) {
        *out << separator << count << " " << kind;
        separator = ", ";
      }
      *out << "\n";
    }
    if (module.passes) {
      int64_t changed = 0, microseconds = 0;
      for (const xla::HloPassMetadata& pass : module.passes->pass_metadata()) {
        changed += pass.module_changed();
        microseconds = std::max<int64_t>(
            microseconds, pass.end_timestamp_usec() - module.passes->pass_metadata(0).start_timestamp_usec());
      }
      *out << "  passes      " << static_cast<int64_t>(module.passes->pass_metadata_size()) << ", " << changed
           << " changed the module, in " << microseconds / 1000 << " ms\n";
    }
    const Stage* previous = nullptr;
    for (const Stage& stage : module.stages) {
      const std::string changes = previous == nullptr ? "" : Changes(previous->opcodes, stage.opcodes);
      const bool same = previous != nullptr && changes.empty();
      previous = &stage;
      if (same && !flags.unchanged) continue;
      *out << "  " << StageName(*stage.file) << ": " << stage.instructions << " instructions";
      if (same) *out << ", as before";
      if (!changes.empty()) *out << ": " << changes;
      *out << "\n";
    }
  }
}

void WriteJson(const std::vector<DumpedModule>& modules, TextWriter* out) {
  JsonWriter json(out);
  json.BeginArray();
  for (const DumpedModule& module : modules) {
    json.BeginObject().Member("id", module.files.front()->module).Member("name", module.name);
    json.Member("assignment_total", module.assignment_total);
    json.Key("files").BeginArray();
    for (const DumpFile* file : module.files) {
      json.BeginObject().Member("path", file->path).Member("kind", NameOf(file->kind)).EndObject();
    }
    json.EndArray().Key("thunks").BeginObject();
    for (const auto& [kind, count] : module.thunks) json.Member(kind, count);
    json.EndObject().Key("stages").BeginArray();
    for (const Stage& stage : module.stages) {
      json.BeginObject().Member("path", stage.file->path).Member("kind", NameOf(stage.file->kind));
      if (stage.file->kind == DumpFile::Kind::kPass) {
        json.Member("number", stage.file->pass_number).Member("pipeline", stage.file->pipeline);
        json.Member("pass", stage.file->pass);
      }
      json.Member("instructions", stage.instructions).Key("opcodes").BeginObject();
      for (const auto& [opcode, count] : stage.opcodes) json.Member(opcode, count);
      json.EndObject().EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray();
}

int Run(const DumpDirFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  const std::vector<DumpFile> files = ListDump(flags.directory, &diagnostics);
  if (files.empty()) {
    if (diagnostics.exit_code() == kOk) {
      diagnostics.ShowError(flags.directory, "no files of a dump: their names are module_NNNN.NAME....", kRejected);
    }
    return diagnostics.exit_code();
  }
  std::vector<DumpedModule> modules;
  for (const DumpFile& file : files) {
    if (modules.empty() || modules.back().files.front()->module != file.module) modules.emplace_back();
    modules.back().files.push_back(&file);
  }
  for (DumpedModule& module : modules) {
    module.name = ModuleName(module.files);
    ReadModuleFiles(flags.input, &module, &diagnostics);
  }
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    if (flags.json) {
      WriteJson(modules, &out);
    } else {
      WriteText(flags, modules, &out);
    }
  });
}

}  // namespace

bool ParseDumpName(std::string_view file_name, DumpFile* file) {
  constexpr std::string_view kModule = "module_";
  const std::vector<std::string_view> words = Words(file_name, '.');
  size_t at = 0;
  int64_t number;
  while (at < words.size() &&
         !(words[at].starts_with(kModule) && IsNumber(words[at].substr(kModule.size()), 4, &number))) {
    ++at;
  }
  if (at + 2 >= words.size()) return false;
  const size_t end = static_cast<size_t>(words[at].data() + words[at].size() - file_name.data());
  file->module = std::string(file_name.substr(0, end));
  file->rest = std::string(file_name.substr(end + 1));
  file->kind = KindOf(file->rest);
  constexpr std::string_view kAfter = "after_";
  for (size_t k = at + 2; k + 2 < words.size(); ++k) {
    if (!IsNumber(words[k], 4, &file->pass_number)) continue;
    for (size_t after = k + 1; after < words.size(); ++after) {
      if (!words[after].starts_with(kAfter)) continue;
      const std::string_view pass = words[after].substr(kAfter.size());
      file->pass = std::string(pass);
      for (size_t p = k + 1; p < after; ++p) StrAppend(&file->pipeline, p == k + 1 ? "" : ".", words[p]);
      file->kind = DumpFile::Kind::kPass;
      return true;
    }
    file->pass_number = -1;
  }
  return true;
}

InspectCommand AddDumpDirCommand(CLI::App* app) {
  auto flags = std::make_shared<DumpDirFlags>();
  CLI::App* command = app->add_subcommand(
      "dump-dir", "show a folder of XLA's dumps: modules, what each pass changed, buffer assignments, thunks");
  command->add_option("DIR", flags->directory, "the folder of --xla_dump_to")->type_name("DIR")->required();
  command->add_flag("--unchanged", flags->unchanged,
                    "show passes too after which each opcode is as frequent as before");
  command->add_flag("--json", flags->json, "print JSON");
  command->add_option("-o,--output", flags->output, "output file; - is standard output")
      ->type_name("FILE")
      ->default_str("-");
  flags->input.AddFlags(command);
  command->footer(
      "Notes:\n"
      "  Modules after each pass are there with --xla_dump_hlo_pass_re=.*\n\n"
      "Examples:\n"
      "  XLA_FLAGS='--xla_dump_to=dump --xla_dump_hlo_pass_re=.*' python3 train.py\n"
      "  hlo-inspect dump-dir dump\n"
      "  hlo-inspect dump-dir --json dump | jq '.[].stages[].instructions'");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace hlokit::cli
