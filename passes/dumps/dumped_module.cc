// SPDX-License-Identifier: Apache-2.0
#include "passes/dumps/dumped_module.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>

#include "io/files/read_file.h"
#include "ir/core/str_cat.h"
#include "parser/proto/proto_file.h"

namespace hlokit::dump {
namespace {

using Kind = DumpFile::Kind;

// Snapshots of more bytes are listed without a look into them.
constexpr uint64_t kMaxSnapshotBytes = uint64_t{256} << 20;

std::vector<std::string_view> Words(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string_view WithoutIndent(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line;
}

// Lines of a thunk sequence begin with a number and a colon, then the kind: `003: kKernel ...`; those of a message in
// text form have `kind: "kernel"`.
std::vector<std::pair<std::string, int64_t>> CountThunks(std::string_view text) {
  OpcodeCounts counts;
  for (std::string_view line : Words(text, '\n')) {
    line = WithoutIndent(line);
    if (line.starts_with("kind: \"")) {
      line.remove_prefix(7);
      ++counts[std::string(line.substr(0, line.find('"')))];
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    int64_t number;
    const auto [end, error] = std::from_chars(line.data(), line.data() + colon, number);
    if (error != std::errc() || end != line.data() + colon) continue;
    line = WithoutIndent(line.substr(colon + 1));
    const std::string_view kind = line.substr(0, line.find_first_of(" \t\r,("));
    if (!kind.empty()) ++counts[std::string(kind)];
  }
  std::vector<std::pair<std::string, int64_t>> thunks(counts.begin(), counts.end());
  std::stable_sort(thunks.begin(), thunks.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return thunks;
}

std::optional<std::string> ReadText(const DumpFile& file, const StageOptions& options, DumpReader* reader) {
  const absl::StatusOr<std::shared_ptr<const SourceBuffer>> source = ReadFile(file.path, options.max_bytes);
  if (source.ok()) return std::string((*source)->text());
  reader->ReportError("", std::string(source.status().message()));
  return std::nullopt;
}

// Reads a message of a module. Returns null if the file holds none, or after errors.
std::unique_ptr<ProtoFile> ReadProto(const DumpFile& file, DumpReader* reader) {
  const std::shared_ptr<const SourceBuffer> source = reader->Read(file.path);
  if (source == nullptr) return nullptr;
  const std::optional<ProtoForm> form = DetectProto(source->text());
  if (!form) return nullptr;
  DiagnosticSink sink;
  std::unique_ptr<ProtoFile> proto = ProtoFile::Read(*source, source->text(), *form, &sink);
  reader->Report(sink, *source);
  return proto;
}

std::string DescribeSnapshot(const DumpFile& file, DumpReader* reader) {
  if (file.bytes > kMaxSnapshotBytes) return "";
  const std::unique_ptr<ProtoFile> proto = ReadProto(file, reader);
  if (proto == nullptr || proto->argument_lists() == 0) {
    reader->ReportError(file.path, "not a snapshot, or it is cut off or damaged");
    return "";
  }
  if (const xla::HloSnapshot* snapshot = proto->snapshot()) {
    return StrCat(Counted(snapshot->arguments_size(), "argument"), proto->has_result() ? " and the result" : "");
  }
  return StrCat("arguments of ", Counted(proto->argument_lists(), "partition"));
}

void ReadPassTimes(const DumpFile& file, const StageOptions& options, DumpedModule* module, DumpReader* reader) {
  const std::optional<std::string> text = ReadText(file, options, reader);
  if (!text) return;
  xla::HloModuleMetadataProto passes;
  int line = 0, column = 0;  // from 0
  const absl::Status status = ParseMessage(*text, ProtoEncoding::kText, &passes, &line, &column);
  if (!status.ok()) {
    reader->ReportError(StrCat(file.path, ":", line + 1, ":", column + 1), std::string(status.message()));
    return;
  }
  std::map<std::string, int64_t> microseconds;  // by file name
  for (const xla::HloPassMetadata& pass : passes.pass_metadata()) {
    for (const std::string& path : pass.dump_filenames()) {
      microseconds[std::filesystem::path(path).filename().string()] =
          std::max<int64_t>(pass.end_timestamp_usec() - pass.start_timestamp_usec(), 0);
    }
  }
  for (DumpStage& stage : module->stages) {
    const auto found = microseconds.find(std::filesystem::path(stage.file->path).filename().string());
    if (found != microseconds.end()) stage.microseconds = found->second;
  }
  module->passes = std::move(passes);
}

// Returns the module that a file of pass times, whose name never has a prefix, belongs to: the only other one of its
// number. Null if there is none.
DumpedModule* OwnerOf(const DumpedModule& module, std::vector<DumpedModule>* modules) {
  const DumpFile& first = *module.files.front();
  if (module.files.size() != 1 || first.kind != Kind::kPassTimes || !first.prefix.empty()) return nullptr;
  DumpedModule* owner = nullptr;
  for (DumpedModule& other : *modules) {
    if (&other == &module || other.files.empty() || other.files.front()->number != first.number) continue;
    if (owner != nullptr) return nullptr;
    owner = &other;
  }
  return owner;
}

}  // namespace

std::string CommonName(const std::vector<const DumpFile*>& files) {
  // Other files may lack the name of the module.
  std::vector<const DumpFile*> named;
  for (const DumpFile* file : files) {
    if (IsStage(file->kind)) named.push_back(file);
  }
  if (named.empty()) named = files;
  std::vector<std::string_view> common = Words(named.front()->rest, '.');
  if (named.size() == 1) common.resize(1);
  for (const DumpFile* file : named) {
    const std::vector<std::string_view> words = Words(file->rest, '.');
    size_t same = 0;
    while (same < common.size() && same < words.size() && common[same] == words[same]) ++same;
    common.resize(std::max<size_t>(same, 1));
  }
  std::string name;
  for (std::string_view word : common) StrAppend(&name, name.empty() ? "" : ".", word);
  return name;
}

std::vector<DumpedModule> GroupFiles(const std::vector<DumpFile>& files) {
  std::vector<DumpedModule> modules;
  for (const DumpFile& file : files) {
    if (modules.empty() || modules.back().id() != file.module) modules.emplace_back();
    modules.back().files.push_back(&file);
  }
  for (DumpedModule& module : modules) {
    DumpedModule* const owner = OwnerOf(module, &modules);
    if (owner == nullptr) continue;
    owner->files.push_back(module.files.front());
    module.files.clear();
  }
  modules.erase(std::remove_if(modules.begin(), modules.end(), [](const DumpedModule& m) { return m.files.empty(); }),
                modules.end());
  return modules;
}

void ReadDumpFiles(const StageOptions& options, DumpedModule* module, DumpReader* reader) {
  module->stages = ReadStages(module->files, options, reader);
  module->name = module->stages.empty() ? CommonName(module->files) : module->stages.front().module_name;
  if (options.only_diffs) return;
  const DumpFile* last = nullptr;  // the message of the compiled module
  for (const DumpFile* file : module->files) {
    switch (file->kind) {
      case Kind::kAfterOptimizations:
        if (file->is_proto) last = file;
        break;
      case Kind::kThunkSequence:
        if (const std::optional<std::string> text = ReadText(*file, options, reader)) {
          module->thunks = CountThunks(*text);
        }
        break;
      case Kind::kBufferAssignment:
        if (const std::optional<std::string> text = ReadText(*file, options, reader)) {
          AssignmentSummary summary = SummarizeAssignmentText(*text);
          if (!summary.blocks.empty()) module->assignment = std::move(summary);
        }
        break;
      case Kind::kPassTimes:
        ReadPassTimes(*file, options, module, reader);
        break;
      case Kind::kSnapshot:
        module->snapshots.emplace_back(file, DescribeSnapshot(*file, reader));
        break;
      case Kind::kStablehlo:
      case Kind::kBeforeOptimizations:
      case Kind::kPass:
      case Kind::kStage:
      case Kind::kOther:
        break;
    }
  }
  if (last == nullptr) return;
  const std::unique_ptr<ProtoFile> proto = ReadProto(*last, reader);  // which tells what is alive at once too
  if (proto != nullptr && proto->buffer_assignment() != nullptr) {
    module->assignment = SummarizeAssignment(*proto->buffer_assignment());
  }
}

}  // namespace hlokit::dump
