// SPDX-License-Identifier: Apache-2.0
// Texts of remarks: lines as of a compiler, YAML as of LLVM's -fsave-optimization-record, JSON, and the table of rules.
#ifndef HLOKIT_PASSES_REMARKS_REMARK_TEXT_H_
#define HLOKIT_PASSES_REMARKS_REMARK_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/core/json_writer.h"
#include "ir/core/text_writer.h"
#include "passes/remarks/remark.h"

namespace hlokit {

// Returns the bits of a list such as "fusion,layout" or "all". Returns an error that names the categories.
absl::StatusOr<uint32_t> ParseRemarkCategories(std::string_view list);
// Returns the bits of a list such as "missed,analysis" or "all".
absl::StatusOr<uint32_t> ParseRemarkKinds(std::string_view list);

// Returns "model.py:12: remark: dot.1 is not fused … [fusion, would-read-more, missed]" without a line break.
std::string RemarkLine(const Remark& remark);
// Writes the lines, with the op_name and the advice on lines of their own.
void WriteRemarksText(absl::Span<const Remark> remarks, TextWriter* out);
// Writes a document for each remark.
void WriteRemarksYaml(absl::Span<const Remark> remarks, TextWriter* out);
// Writes an array of objects as the next value.
void WriteRemarksJson(absl::Span<const Remark> remarks, JsonWriter* json);
// Returns the rules as tables in Markdown, a chapter for each category.
std::string RemarkRulesAsMarkdown();

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REMARKS_REMARK_TEXT_H_
