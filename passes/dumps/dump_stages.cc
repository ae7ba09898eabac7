// SPDX-License-Identifier: Apache-2.0
#include "passes/dumps/dump_stages.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "io/dumps/module_files.h"
#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "parser/formats/parser.h"

namespace hlokit::dump {
namespace {

// A context keeps the contents of all its modules, so a new one begins after this many bytes of files.
constexpr uint64_t kMaxContextBytes = uint64_t{256} << 20;

// The stages of a module: forms of one stage are neighbors, texts, which have all attributes, first.
std::vector<const DumpFile*> InOrder(const std::vector<const DumpFile*>& files) {
  std::vector<const DumpFile*> stages;
  for (const DumpFile* file : files) {
    if (IsStage(file->kind)) stages.push_back(file);
  }
  const auto key = [](const DumpFile* f) { return std::tie(f->kind, f->pass_number, f->stage, f->is_proto, f->path); };
  std::sort(stages.begin(), stages.end(), [&](const DumpFile* a, const DumpFile* b) { return key(a) < key(b); });
  return stages;
}

bool OfOneStage(const DumpFile& a, const DumpFile& b) { return a.kind == b.kind && a.stage == b.stage; }

// Returns the stages of which the text of the difference is to be shown, and those directly before them.
std::vector<const DumpFile*> OnlyDiffs(const std::vector<const DumpFile*>& files, const StageOptions& options) {
  std::vector<const DumpFile*> needed;
  const DumpFile* wanted = nullptr;  // the stage whose predecessor is needed
  const DumpFile* before = nullptr;
  for (size_t k = files.size(); k-- > 0;) {
    const DumpFile& file = *files[k];
    if (wanted != nullptr && before == nullptr && !OfOneStage(file, *wanted)) before = &file;
    const bool shown = options.shows_diff(file);
    if (shown || (before != nullptr && OfOneStage(file, *before))) needed.push_back(&file);
    if (!shown && before != nullptr && !OfOneStage(file, *before)) wanted = before = nullptr;
    if (shown && (wanted == nullptr || !OfOneStage(file, *wanted))) {
      wanted = &file;
      before = nullptr;
    }
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

// Returns true if no pass ran from one to the other but that of `to`.
bool OfOnePass(const DumpFile& from, const DumpFile& to) {
  if (to.kind == DumpFile::Kind::kBeforeOptimizations) return true;
  if (to.kind != DumpFile::Kind::kPass) return from.kind == DumpFile::Kind::kPass && from.next == "pipeline-end";
  if (from.kind != DumpFile::Kind::kPass) return to.pass == "pipeline-start";
  return from.next == to.pass || (from.next == "pipeline-end" && to.pass == "pipeline-start");
}

struct ReadModule {
  std::unique_ptr<Module> module;
  std::shared_ptr<const SourceBuffer> source;
};

class StageReader {
 public:
  StageReader(const StageOptions& options, DumpReader* reader) : options_(options), reader_(*reader) {}

  std::vector<DumpStage> Run(const std::vector<const DumpFile*>& files) {
    bool found = false;
    for (size_t k = 0; k < files.size(); ++k) {
      if (k == 0 || !OfOneStage(*files[k - 1], *files[k])) found = false;
      if (!found) found = Add(*files[k]);
    }
    return std::move(stages_);
  }

 private:
  // Reads one file. Returns false after an error.
  bool Add(const DumpFile& file) {
    const std::shared_ptr<const SourceBuffer> source = reader_.Read(file.path);
    if (source == nullptr) return false;
    if (file.kind == DumpFile::Kind::kStablehlo && !IsStablehloDump(source->text())) return true;
    const bool equal_text = previous_.module != nullptr && !file.is_proto && previous_.source->text() == source->text();
    if (equal_text) {
      DumpStage stage = stages_.back();
      stage.file = &file;
      stage.name = StageName(file);
      stage.change.emplace();
      SetFrom(*stages_.back().file, file, &*stage.change);
      if (options_.shows_diff(file)) {
        const Module& same = *previous_.module;
        stage.change->diff_text = DiffText(*stages_.back().file, file, same, same, CompareModules(same, same), {});
      }
      stages_.push_back(std::move(stage));
      return true;
    }
    if (previous_.module != nullptr && context_bytes_ > kMaxContextBytes) Renew();
    ReadModule read = {
        reader_.Parse(source, previous_.module == nullptr ? nullptr : previous_.module->shared_context()), source};
    if (read.module == nullptr) return false;
    if (previous_.module == nullptr) context_bytes_ = 0;
    context_bytes_ += file.bytes;
    DumpStage stage;
    stage.file = &file;
    stage.name = StageName(file);
    stage.module_name = read.module->name();
    for (Computation c : read.module->computations()) {
      for (Instruction i : c.instructions()) {
        ++stage.instructions;
        ++stage.opcodes[std::string(i.opcode_text())];
      }
    }
    if (previous_.module != nullptr && previous_.module->entry().valid() && read.module->entry().valid()) {
      stage.change = Compare(*stages_.back().file, file, *previous_.module, *read.module);
    }
    previous_ = std::move(read);
    stages_.push_back(std::move(stage));
    return true;
  }

  // Reads the last module once more, into a context without those before.
  void Renew() {
    DiagnosticSink sink;
    const std::shared_ptr<const SourceBuffer> source = previous_.source;
    previous_.module = nullptr;
    previous_.module = ParseModulePart(source, source->text(), options_.parse, &sink);
    context_bytes_ = source->text().size();
  }

  void SetFrom(const DumpFile& from, const DumpFile& to, StageChange* change) const {
    change->from = stages_.size() - 1;
    change->of_one_pass = OfOnePass(from, to);
  }

  StageChange Compare(const DumpFile& from, const DumpFile& to, const Module& a, const Module& b) const {
    StageChange change;
    SetFrom(from, to, &change);
    DiffOptions ignored;
    ignored.ignored.Add(Aspect::kName);
    const ModuleDiff diff = CompareModules(a, b, ignored);
    change.added = static_cast<int64_t>(diff.added.size());
    change.removed = static_cast<int64_t>(diff.removed.size());
    change.changed = static_cast<int64_t>(diff.changed.size());
    change.count_by_aspect = diff.count_by_aspect;
    change.header = diff.header;
    if (diff.same() && !options_.shows_diff(to)) return change;
    const DiffSummary summary = Summarize(a, b, diff);
    change.by_opcode = summary.by_opcode;
    if (options_.shows_diff(to)) change.diff_text = DiffText(from, to, a, b, diff, summary);
    return change;
  }

  std::string DiffText(const DumpFile& from, const DumpFile& to, const Module& a, const Module& b,
                       const ModuleDiff& diff, const DiffSummary& summary) const {
    DiffTextOptions text = options_.text;
    text.label_a = from.path;
    text.label_b = to.path;
    std::string result;
    {
      TextWriter out(&result);
      PrintDiff(out, a, b, diff, summary, text);
    }
    return result;
  }

  const StageOptions& options_;
  DumpReader& reader_;
  std::vector<DumpStage> stages_;
  ReadModule previous_;  // of the last stage
  uint64_t context_bytes_ = 0;
};

}  // namespace

std::string StageName(const DumpFile& file) {
  if (file.kind == DumpFile::Kind::kPass) return StrCat(file.pass_number, " ", file.pipeline, "/", file.pass);
  if (file.kind == DumpFile::Kind::kStablehlo) return "StableHLO";
  return file.kind == DumpFile::Kind::kStage ? file.stage : std::string(file.description);
}

std::vector<std::string> StageNames(const DumpFile& file) {
  if (!IsStage(file.kind)) return {};
  if (file.kind == DumpFile::Kind::kPass) {
    return {file.pass, StrCat(file.pipeline, "/", file.pass), StrCat(file.pass_number), StageName(file)};
  }
  std::string underscored(file.description);
  std::replace(underscored.begin(), underscored.end(), ' ', '_');
  return {underscored, std::string(file.description), file.stage};
}

std::vector<std::vector<const DumpFile*>> StageFiles(const std::vector<const DumpFile*>& files) {
  std::vector<std::vector<const DumpFile*>> stages;
  for (const DumpFile* file : InOrder(files)) {
    if (stages.empty() || !OfOneStage(*stages.back().front(), *file)) stages.emplace_back();
    stages.back().push_back(file);
  }
  return stages;
}

std::vector<DumpStage> ReadStages(const std::vector<const DumpFile*>& files, const StageOptions& options,
                                  DumpReader* reader) {
  const std::vector<const DumpFile*> ordered = InOrder(files);
  return StageReader(options, reader).Run(options.only_diffs ? OnlyDiffs(ordered, options) : ordered);
}

}  // namespace hlokit::dump
