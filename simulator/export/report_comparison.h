// SPDX-License-Identifier: Apache-2.0
// Compares two reports (docs/report.md, report_document.h), as text and as the document of a page.
#ifndef HLOKIT_SIMULATOR_EXPORT_REPORT_COMPARISON_H_
#define HLOKIT_SIMULATOR_EXPORT_REPORT_COMPARISON_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ir/core/text_writer.h"

namespace hlokit::tpu {

// Returns the report in the text of a report.json, or an error if that has not what a comparison reads.
absl::StatusOr<nlohmann::ordered_json> ParseReport(std::string_view text);

// Prints the differences, with at most `top` rows of operations and scopes.
void PrintReportComparison(const nlohmann::ordered_json& before, const nlohmann::ordered_json& after, size_t top,
                           TextWriter* out);

// Returns the document of the page with both.
std::string ReportComparisonDocument(nlohmann::ordered_json before, nlohmann::ordered_json after);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_REPORT_COMPARISON_H_
