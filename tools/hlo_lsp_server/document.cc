// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_lsp_server/document.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "ir/core/source_buffer.h"
#include "ir/core/str_cat.h"
#include "ir/verify/elided_constants.h"
#include "ir/verify/verifier.h"
#include "parser/formats/foreign_format.h"
#include "parser/formats/parser.h"
#include "parser/formats/source_names.h"
#include "passes/core/pipeline.h"
#include "passes/target/device_description.h"
#include "tools/hlo_lsp_server/protocol.h"

namespace hlokit::lsp {
namespace {

struct LanguageRow {
  std::string_view name;  // of the client's language, or a suffix
  Language language;
};
constexpr LanguageRow kLanguageIds[] = {
    {"hlo", Language::kHlo},
    {"stablehlo", Language::kStablehlo},
    {"mlir", Language::kStablehlo},
    {"hlo-pipeline", Language::kPipeline},
    {"tpu-machine", Language::kMachine},
};
constexpr LanguageRow kSuffixes[] = {
    {".mlir", Language::kStablehlo},
    {".stablehlo", Language::kStablehlo},
    {".passes", Language::kPipeline},
    {".tpu", Language::kMachine},
};

constexpr std::string_view kSplit = "// -----";

bool IsSplit(std::string_view text) {
  return text.starts_with(kSplit) || text.find("\n// -----") != std::string_view::npos;
}

// Returns the place that a message about a pipeline names: "column N", else a word in backquotes.
SourceRange PlaceInPipeline(std::string_view message, std::string_view text) {
  constexpr std::string_view kColumn = "pipeline, column ";
  if (message.starts_with(kColumn)) {
    uint32_t column = 0;
    for (const char c : message.substr(kColumn.size())) {
      if (c < '0' || c > '9' || column > (uint32_t{1} << 28)) break;
      column = column * 10 + static_cast<uint32_t>(c - '0');
    }
    if (column > 0) return {std::min(column - 1, static_cast<uint32_t>(text.size())), 1};
  }
  const size_t open = message.find('`');
  const size_t close = open == std::string_view::npos ? open : message.find('`', open + 1);
  if (close == std::string_view::npos) return {0, 0};
  const std::string_view word = message.substr(open + 1, close - open - 1);
  const auto is_word = [](char c) {
    return c == '-' || c == '_' || absl::ascii_isalnum(static_cast<unsigned char>(c));
  };
  for (size_t at = text.find(word); at != std::string_view::npos && !word.empty(); at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) {
      return {static_cast<uint32_t>(at), static_cast<uint32_t>(word.size())};
    }
  }
  return {0, 0};
}

}  // namespace

std::optional<Language> LanguageOf(std::string_view language_id, std::string_view uri) {
  for (const LanguageRow& row : kSuffixes) {
    if (uri.ends_with(row.name)) return row.language;
  }
  for (const LanguageRow& row : kLanguageIds) {
    if (language_id == row.name && row.language != Language::kHlo) return row.language;
  }
  return std::nullopt;
}

Analysis::Analysis(Language language, const std::string& name, const std::string& text) {
  switch (language) {
    case Language::kHlo:
    case Language::kStablehlo:
      AnalyzeModules(name, text);
      break;
    case Language::kPipeline:
      AnalyzePipeline(text);
      break;
    case Language::kMachine:
      AnalyzeMachine(name, text);
      break;
  }
  std::stable_sort(diagnostics_.begin(), diagnostics_.end(),
                   [](const Diagnostic& a, const Diagnostic& b) { return a.range.offset < b.range.offset; });
}

void Analysis::Add(const DiagnosticSink& sink) {
  diagnostics_.insert(diagnostics_.end(), sink.diagnostics().begin(), sink.diagnostics().end());
  has_errors_ = has_errors_ || sink.has_errors();
}

void Analysis::AnalyzeModules(const std::string& name, const std::string& text) {
  auto source = std::make_shared<const SourceBuffer>(name, text);
  std::vector<std::string_view> parts = {source->text()};
  if (IsSplit(text)) {
    SplitInput split = SplitInputFile(*source);
    source = std::move(split.source);
    parts = std::move(split.chunks);
  }
  ParseOptions options;
  options.check_shapes_after_errors = true;
  for (const std::string_view part : parts) {
    DiagnosticSink sink;
    std::unique_ptr<Module> module = ParseModulePart(source, part, options, &sink);
    if (module != nullptr) WarnOfElidedConstants(*module, &sink);
    Add(sink);
    if (module == nullptr) continue;
    DiagnosticSink rules;
    VerifyModule(*module, {}, &rules);
    if (!rules.diagnostics().empty()) Add(WithSourceNames(rules, *module, *source));
    if (!rules.has_errors()) modules_.push_back(std::move(module));
  }
  costs_.resize(modules_.size());
}

// The parser ends at the first error. After an unknown name it goes on as if that were a pass, of the same length so
// that columns stay; other errors end it.
void Analysis::AnalyzePipeline(const std::string& text) {
  constexpr std::string_view kKnown = "dce", kUnknown = "unknown pass ";
  constexpr int kMaxErrors = 20;
  std::string rest = text;
  DiagnosticSink sink;
  for (int errors = 0; errors < kMaxErrors; ++errors) {
    const absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(rest);
    if (pipeline.ok()) break;
    const std::string message(pipeline.status().message());
    const SourceRange place = PlaceInPipeline(message, rest);
    // An option of the unknown pass.
    if (errors > 0 && message.find(StrCat("`", kKnown, "`")) != std::string::npos) break;
    sink.Error(DiagnosticKind::kUnexpectedToken, place, message);
    if (!message.starts_with(kUnknown) || place.size < kKnown.size()) break;
    rest.replace(place.offset, place.size, StrCat(kKnown, std::string(place.size - kKnown.size(), ' ')));
  }
  Add(sink);
}

void Analysis::AnalyzeMachine(const std::string& name, const std::string& text) {
  DiagnosticSink sink;
  tpu::ParseDeviceDescription(SourceBuffer(name, text), &sink);
  Add(sink);
}

Instruction Analysis::At(uint32_t offset) const {
  if (by_offset_.empty()) {
    for (const auto& module : modules_) {
      for (const Computation computation : module->computations()) {
        for (const Instruction i : computation.instructions()) {
          if (i.record().source_offset != InstructionRecord::kNoSourceOffset) {
            by_offset_.emplace_back(i.record().source_offset, i);
          }
        }
      }
    }
    std::stable_sort(by_offset_.begin(), by_offset_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  const auto after = std::upper_bound(by_offset_.begin(), by_offset_.end(), offset,
                                      [](uint32_t at, const auto& entry) { return at < entry.first; });
  return after != by_offset_.begin() && after[-1].first == offset ? after[-1].second : Instruction();
}

const CostAnalysis& Analysis::CostsOf(const Module& module) const {
  size_t k = 0;
  while (modules_[k].get() != &module) ++k;
  if (costs_[k] == nullptr) costs_[k] = std::make_unique<CostAnalysis>(module);
  return *costs_[k];
}

Document::Document(std::string uri, std::optional<Language> language, int64_t version, std::string text,
                   PositionEncoding encoding)
    : uri_(std::move(uri)),
      language_is_given_(language.has_value()),
      language_(language.value_or(Language::kHlo)),
      version_(version),
      text_(std::move(text), encoding) {
  Forget();
}

std::string Document::path() const {
  std::string path = PathOfUri(uri_);
  return path.empty() ? uri_ : path;
}

void Document::Forget() {
  index_.reset();
  analysis_.reset();
  if (!language_is_given_) language_ = LooksLikeMlir(text_.text()) ? Language::kStablehlo : Language::kHlo;
}

void Document::Replace(uint32_t begin, uint32_t end, std::string_view with) {
  text_.Replace(begin, end, with);
  Forget();
}

void Document::Reset(std::string text) {
  text_.Reset(std::move(text));
  Forget();
}

const SymbolIndex& Document::index() {
  if (!index_) {
    switch (language_) {
      case Language::kHlo:
        index_ = SymbolIndex::OfHlo(text_.text());
        break;
      case Language::kStablehlo:
        index_ = SymbolIndex::OfMlir(text_.text());
        break;
      case Language::kPipeline:
      case Language::kMachine:
        index_.emplace();
        break;
    }
  }
  return *index_;
}

const Analysis& Document::analysis() {
  if (analysis_ == nullptr) analysis_ = std::make_unique<Analysis>(language_, path(), text_.string());
  return *analysis_;
}

Instruction Document::InstructionOf(const Symbol& symbol) {
  if (!is_program() || symbol.kind != SymbolKind::kInstruction) return {};
  // An instruction has the place of its name; in StableHLO that of the operation, whose name may be in quotes, or of
  // the argument with its sigil.
  const uint32_t place =
      symbol.opcode.size > 0 && language_ == Language::kStablehlo ? symbol.opcode.offset : symbol.name.offset;
  const Instruction i = analysis().At(place);
  return i.valid() || place == 0 ? i : analysis().At(place - 1);
}

}  // namespace hlokit::lsp
