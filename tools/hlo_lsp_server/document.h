// SPDX-License-Identifier: Apache-2.0
// An open document and what is known of its text. Names are found at once (symbol_index.h), the module and the
// diagnostics when something asks for them; a change drops both before the text is read again, so a document holds one
// of each. Reading and verifying a dump of 4 MB takes 30 ms, so nothing is kept of the text before.
#ifndef HLOKIT_TOOLS_HLO_LSP_SERVER_DOCUMENT_H_
#define HLOKIT_TOOLS_HLO_LSP_SERVER_DOCUMENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "passes/analysis/cost.h"
#include "tools/hlo_lsp_server/symbol_index.h"
#include "tools/hlo_lsp_server/text_document.h"

namespace hlokit::lsp {

enum class Language : uint8_t {
  kHlo,
  kStablehlo,
  kPipeline,  // a pipeline of passes
  kMachine,   // a machine description, .tpu
};
// By the suffix of the file, then by the name that the client has for the language; nullopt if the text decides between
// HLO and StableHLO, which both are in files of any name.
std::optional<Language> LanguageOf(std::string_view language_id, std::string_view uri);

// The modules of a text and what is wrong with it.
class Analysis {
 public:
  // Reads and, where it can be read, verifies the text: with the messages that the tools print for it. A file whose
  // parts are separated by `// -----` has several modules.
  Analysis(Language language, const std::string& name, const std::string& text);

  // By offset. Errors and warnings.
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  bool has_errors() const { return has_errors_; }
  // The modules that are valid.
  const std::vector<std::unique_ptr<Module>>& modules() const { return modules_; }
  // Returns the instruction of a valid module whose name begins at the offset, a sigil included; invalid if there is
  // none.
  Instruction At(uint32_t offset) const;
  const CostAnalysis& CostsOf(const Module& module) const;

 private:
  void AnalyzeModules(const std::string& name, const std::string& text);
  void AnalyzePipeline(const std::string& text);
  void AnalyzeMachine(const std::string& name, const std::string& text);
  void Add(const DiagnosticSink& sink);

  std::vector<Diagnostic> diagnostics_;
  bool has_errors_ = false;
  std::vector<std::unique_ptr<Module>> modules_;
  mutable std::vector<std::unique_ptr<CostAnalysis>> costs_;         // by module
  mutable std::vector<std::pair<uint32_t, Instruction>> by_offset_;  // made by At
};

class Document {
 public:
  Document(std::string uri, std::optional<Language> language, int64_t version, std::string text,
           PositionEncoding encoding);

  const std::string& uri() const { return uri_; }
  // The path of the file, or the URI of something else.
  std::string path() const;
  Language language() const { return language_; }
  bool is_program() const { return language_ == Language::kHlo || language_ == Language::kStablehlo; }
  int64_t version() const { return version_; }
  void set_version(int64_t version) { version_ = version; }
  const TextDocument& text() const { return text_; }

  void Replace(uint32_t begin, uint32_t end, std::string_view with);
  void Reset(std::string text);

  const SymbolIndex& index();
  const Analysis& analysis();
  // Returns the instruction that the symbol is in a valid module; invalid otherwise.
  Instruction InstructionOf(const Symbol& symbol);

 private:
  // After a change: forgets what is known of the text.
  void Forget();

  const std::string uri_;
  const bool language_is_given_;
  Language language_;
  int64_t version_;
  TextDocument text_;
  std::optional<SymbolIndex> index_;
  std::unique_ptr<Analysis> analysis_;
};

}  // namespace hlokit::lsp

#endif  // HLOKIT_TOOLS_HLO_LSP_SERVER_DOCUMENT_H_
