// SPDX-License-Identifier: Apache-2.0
// Diagnostics: an error or warning, its location, and a hint. Every kind is a row of diagnostics.def, so that a test
// can show that each one is produced. Libraries report into a DiagnosticSink; tools render it.
#ifndef HLOKIT_IR_CORE_DIAGNOSTIC_H_
#define HLOKIT_IR_CORE_DIAGNOSTIC_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ir/core/source_buffer.h"

namespace hlokit {

enum class DiagnosticKind : uint8_t {
#define DIAGNOSTIC(name, text) k##name,
#include "ir/core/diagnostics.def"
};

// Returns a stable name for scripts, such as "undefined-operand".
std::string_view ToString(DiagnosticKind kind);

enum class Severity : uint8_t { kError, kWarning };

// A range of bytes of the source; size 0 points between two bytes.
struct SourceRange {
  static constexpr uint32_t kNoOffset = 0xffffffffu;
  uint32_t offset = kNoOffset;
  uint32_t size = 0;
};

struct Diagnostic {
  DiagnosticKind kind;
  Severity severity = Severity::kError;
  SourceRange range;
  std::string message;
  std::string hint;  // "did you mean `lhs_batch_dims`?"; may be empty
};

// Collects diagnostics of one input. Keeps the first `limit` errors and as many warnings, and counts the rest.
class DiagnosticSink {
 public:
  explicit DiagnosticSink(size_t limit = 100) : limit_(limit) {}

  void Report(Diagnostic d);
  void Error(DiagnosticKind kind, SourceRange range, std::string message, std::string hint = "") {
    Report({kind, Severity::kError, range, std::move(message), std::move(hint)});
  }
  void Warning(DiagnosticKind kind, SourceRange range, std::string message, std::string hint = "") {
    Report({kind, Severity::kWarning, range, std::move(message), std::move(hint)});
  }

  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  size_t error_count() const { return errors_; }
  size_t warning_count() const { return warnings_; }
  bool has_errors() const { return errors_ != 0; }
  // Returns true once `limit` errors have been reported: callers stop early.
  bool limit_reached() const { return errors_ >= limit_; }

  // Returns OK, or the first error as a status with "file:line:col: ".
  absl::Status ToStatus(const SourceBuffer& source) const;

 private:
  size_t limit_;
  size_t errors_ = 0;
  size_t warnings_ = 0;
  std::vector<Diagnostic> diagnostics_;
};

// Returns "file:line:col: error: message", the line, a caret run under the range, and the hint. Sorted by location.
std::string RenderText(const DiagnosticSink& sink, const SourceBuffer& source);
// Returns a JSON array of {file, line, column, end_line, end_column, severity, kind, message, hint}.
std::string RenderJson(const DiagnosticSink& sink, const SourceBuffer& source);

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_DIAGNOSTIC_H_
