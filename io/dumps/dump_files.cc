// SPDX-License-Identifier: Apache-2.0
#include "io/dumps/dump_files.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "io/stores/store_url.h"
#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

using Kind = DumpFile::Kind;

constexpr std::string_view kUnknown = "other";

struct SuffixRow {
  std::string_view suffix;
  Kind kind;
  std::string_view description;
};

// Names of which the whole end is known. The first row that fits counts.
constexpr SuffixRow kNames[] = {
    {"buffer-assignment.txt", Kind::kBufferAssignment, "buffer assignment"},
    {"buffer_assignment.txt", Kind::kBufferAssignment, "buffer assignment"},
    {"buffer-assignment-values.txt", Kind::kOther, "values of the buffer assignment"},
    {"live-range.txt", Kind::kOther, "live ranges"},
    {"compile_options.pb", Kind::kOther, "compile options"},
    {"compile_options.txt", Kind::kOther, "compile options"},
    {"compile_options.pbtxt", Kind::kOther, "compile options"},
    {"compile_options.textproto", Kind::kOther, "compile options"},
    {"topology.pb", Kind::kOther, "topology"},
    {"topology.txt", Kind::kOther, "topology"},
    {"topology.pbtxt", Kind::kOther, "topology"},
    {"topology.textproto", Kind::kOther, "topology"},
    {"thunk_sequence.txt", Kind::kThunkSequence, "thunk sequence"},
    {"thunk-sequence.txt", Kind::kThunkSequence, "thunk sequence"},
    {"metadata.textproto", Kind::kPassTimes, "pass times"},
    {".hlo_snapshot.pb", Kind::kSnapshot, "snapshot"},
    {".snapshot.mlir.pb", Kind::kSnapshot, "snapshot"},
    {".hlo_unoptimized_snapshot.pb", Kind::kSnapshot, "unoptimized snapshot"},
    {".hlo_unoptimized_snapshot.txt", Kind::kSnapshot, "unoptimized snapshot"},
    {".hlo_unoptimized_snapshot.pbtxt", Kind::kSnapshot, "unoptimized snapshot"},
    {"memory-usage-report.txt", Kind::kOther, "memory usage report"},
    {"memory-usage-report.pb", Kind::kOther, "memory usage report"},
    {"debug_options", Kind::kOther, "debug options"},
    {"debug_options.txt", Kind::kOther, "debug options"},
    {"debug_options.pbtxt", Kind::kOther, "debug options"},
    {"gpu_target_config.pbtxt", Kind::kOther, "device description"},
    {"config.pbtxt", Kind::kOther, "configuration"},
    {"autotune_results.pbtxt", Kind::kOther, "autotuning"},
    {".ll", Kind::kOther, "LLVM IR"},
    {".bc", Kind::kOther, "LLVM bitcode"},
    {".ptx", Kind::kOther, "PTX"},
    {".cubin", Kind::kOther, "GPU code"},
    {".hsaco", Kind::kOther, "GPU code"},
    {".s", Kind::kOther, "assembly"},
    {".o", Kind::kOther, "object code"},
    {".dot", Kind::kOther, "graph"},
    {".html", Kind::kOther, "graph"},
    {".url", Kind::kOther, "graph"},
};

// Forms of a module: what is left without them is the name of a stage. The first row that fits counts.
struct FormRow {
  std::string_view suffix;
  bool is_proto;
};
constexpr FormRow kForms[] = {{".hlo.pb.gz", true},     {".hlo.pb", true},    {".hlo_proto.pb", true},
                              {".hlo_module.pb", true}, {".hlo.pbtxt", true}, {".hlo.textproto", true},
                              {".riegeli", true},       {".hlo.txt", false},  {".hlo", false},
                              {".txt", false}};

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('.', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::optional<int64_t> DumpNumber(std::string_view digits) {
  int64_t number;
  if (digits.size() < 4) return std::nullopt;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0) return std::nullopt;
  return number;
}

// Reads NNNN.PIPELINE.after_PASS.before_NEXT, or NNNN.PASS.after_STEP, at the end of a stage. Names of modules,
// pipelines and passes may contain dots.
bool ParsePass(std::string_view stage, DumpFile* file) {
  constexpr std::string_view kAfter = ".after_", kBefore = ".before_";
  for (size_t after = stage.find(kAfter); after != std::string_view::npos; after = stage.find(kAfter, after + 1)) {
    // Of steps within a pass there is no next one.
    const size_t before = std::min(stage.find(kBefore, after + kAfter.size()), stage.size());
    const std::vector<std::string_view> words = Words(stage.substr(0, after));
    for (size_t k = words.size() - 1; k-- > 0;) {  // a pipeline has a word at least
      const std::optional<int64_t> number = DumpNumber(words[k]);
      if (!number) continue;
      file->pass_number = *number;
      file->pipeline = std::string(
          stage.substr(0, after).substr(static_cast<size_t>(words[k].data() + words[k].size() + 1 - stage.data())));
      file->pass = std::string(stage.substr(after + kAfter.size(), before - after - kAfter.size()));
      if (before < stage.size()) file->next = std::string(stage.substr(before + kBefore.size()));
      return true;
    }
  }
  return false;
}

void Classify(DumpFile* file) {
  const std::string_view rest = file->rest;
  const auto set = [&](Kind kind, std::string_view description) {
    file->kind = kind;
    file->description = description;
  };
  for (const SuffixRow& row : kNames) {
    if (rest.ends_with(row.suffix)) return set(row.kind, row.description);
  }
  if (rest.ends_with(".pb") && rest.find(".snapshot.") != std::string_view::npos) {  // .snapshot.HASH.pb
    return set(Kind::kSnapshot, "snapshot");
  }
  if (rest.ends_with(".mlir")) {
    file->stage = std::string(rest.substr(0, rest.size() - 5));
    return set(Kind::kStablehlo, "MLIR");
  }
  for (const FormRow& form : kForms) {
    if (!rest.ends_with(form.suffix)) continue;
    file->stage = std::string(rest.substr(0, rest.size() - form.suffix.size()));
    file->is_proto = form.is_proto;
    if (ParsePass(file->stage, file)) return set(Kind::kPass, "pass");
    if (file->stage.ends_with("before_optimizations")) return set(Kind::kBeforeOptimizations, "before optimizations");
    if (file->stage.ends_with("after_optimizations")) return set(Kind::kAfterOptimizations, "after optimizations");
    // Other texts are of many kinds.
    if (form.suffix != ".txt") return set(Kind::kStage, "module");
    file->stage.clear();
    break;
  }
  set(Kind::kOther, kUnknown);
}

}  // namespace

bool IsStage(DumpFile::Kind kind) { return kind <= Kind::kAfterOptimizations; }

bool IsKnownSideFile(const DumpFile& file) {
  return !IsStage(file.kind) && file.kind != Kind::kSnapshot && file.description != kUnknown;
}

bool ParseDumpName(std::string_view file_name, DumpFile* file) {
  constexpr std::string_view kJax = "jax_ir", kModule = "module_";
  if (file_name.starts_with(kJax) && file_name.ends_with(".mlir")) {
    const size_t end = file_name.find('_', kJax.size());
    if (end == std::string_view::npos) return false;
    int64_t number;
    const auto [last, error] = std::from_chars(file_name.data() + kJax.size(), file_name.data() + end, number);
    if (error != std::errc() || last != file_name.data() + end || number < 0) return false;
    file->module = std::string(file_name.substr(0, end));
    file->prefix = std::string(kJax);
    file->number = number;
    file->rest = std::string(file_name.substr(end + 1));
    Classify(file);
    return true;
  }
  size_t begin = 0;
  for (const std::string_view word : Words(file_name)) {
    const std::optional<int64_t> number =
        word.starts_with(kModule) ? DumpNumber(word.substr(kModule.size())) : std::nullopt;
    const size_t end = begin + word.size();
    if (number && end + 1 < file_name.size()) {
      file->module = std::string(file_name.substr(0, end));
      file->prefix = std::string(file_name.substr(0, begin == 0 ? 0 : begin - 1));
      file->number = *number;
      file->rest = std::string(file_name.substr(end + 1));
      Classify(file);
      return true;
    }
    begin = end + 1;
  }
  return false;
}

absl::StatusOr<DumpListing> ListDumpFiles(const std::string& directory) {
  constexpr int kMaxDepth = 3;  // of folders
  DumpListing listing;
  std::error_code error;
  if (IsStoreUrl(directory)) {
    return absl::InvalidArgumentError(StrCat(directory, ": expected a local directory; copy the files first"));
  }
  const std::filesystem::path root(directory);
  const auto options = std::filesystem::directory_options::skip_permission_denied;
  for (std::filesystem::recursive_directory_iterator at(root, options, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored)) {
      if (at.depth() == kMaxDepth) at.disable_recursion_pending();
      continue;
    }
    // Opening a pipe that has a dump's name would wait for a writer.
    DumpFile file;
    if (!at->is_regular_file(ignored) || !ParseDumpName(at->path().filename().string(), &file)) {
      listing.others += at.depth() == 0;
      continue;
    }
    if (at.depth() > 0) {
      const std::string folder = at->path().parent_path().lexically_relative(root).string() + "/";
      file.module.insert(0, folder);
      file.prefix.insert(0, folder);
    }
    file.path = at->path().string();
    const uintmax_t bytes = at->file_size(ignored);
    file.bytes = ignored ? 0 : bytes;
    const auto written = at->last_write_time(ignored).time_since_epoch();
    if (!ignored) file.written_us = std::chrono::duration_cast<std::chrono::microseconds>(written).count();
    listing.files.push_back(std::move(file));
  }
  if (error) return absl::NotFoundError(StrCat(directory, ": ", error.message()));
  std::sort(listing.files.begin(), listing.files.end(), [](const DumpFile& a, const DumpFile& b) {
    return std::tie(a.prefix, a.number, a.path) < std::tie(b.prefix, b.number, b.path);
  });
  return listing;
}

}  // namespace hlokit
