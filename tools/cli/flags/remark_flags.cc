// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/flags/remark_flags.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <utility>

#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "passes/remarks/fusion_steps.h"
#include "passes/remarks/remark_text.h"
#include "tools/cli/output_file.h"
#include "tools/cli/text/regex.h"

namespace hlokit::cli {
namespace {

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

void RemarkFlags::AddFlags(CLI::App* app, std::string_view group) {
  CLI::Option* const options[] = {
      app->add_option(
             "--remarks", categories_,
             "remarks of the passes on what they did and what not, and why, on standard error: fusion, layout, "
             "sharding, schedule, memory, several separated by commas, or all (docs/remarks.md)")
          ->type_name("LIST"),
      app->add_option("--remarks-kinds", kinds_,
                      "passed, missed or analysis, as of -Rpass, -Rpass-missed and -Rpass-analysis; several separated "
                      "by commas, or all")
          ->type_name("LIST")
          ->capture_default_str(),
      app->add_option("--remarks-filter", filter_,
                      "only remarks whose line, with names, rule and source line, the expression is found in")
          ->type_name("REGEX"),
      app->add_option("--remarks-output", output_,
                      "write the remarks to this file instead: .yaml as LLVM's -fsave-optimization-record, .json, or "
                      "text; without --remarks all of them")
          ->type_name("FILE"),
      app->add_option("--fusion-steps", steps_,
                      "write the decisions of fusion one by one, with the neighborhood of each: .html a page, .dot a "
                      "graph for each step, or text")
          ->type_name("FILE")};
  if (group.empty()) return;
  for (CLI::Option* option : options) option->group(std::string(group));
}

std::optional<int> RemarkFlags::Prepare(std::string_view tool, bool always) {
  if (given().empty() && !always) return std::nullopt;
  RemarkFilter filter;
  const std::string list = !categories_.empty() ? categories_ : output_.empty() && !steps_.empty() ? "fusion" : "all";
  const absl::StatusOr<uint32_t> categories = ParseRemarkCategories(list);
  if (!categories.ok()) return UsageError(tool, StrCat("--remarks: ", std::string(categories.status().message())));
  filter.categories = *categories;
  if (!steps_.empty()) filter.categories |= uint32_t{1} << static_cast<int>(RemarkCategory::kFusion);
  const absl::StatusOr<uint32_t> kinds = ParseRemarkKinds(kinds_);
  if (!kinds.ok()) return UsageError(tool, StrCat("--remarks-kinds: ", std::string(kinds.status().message())));
  filter.kinds = *kinds;
  if (!filter_.empty()) {
    auto matches = CompileRegex(filter_);
    if (!matches.ok()) return UsageError(tool, StrCat("--remarks-filter: ", std::string(matches.status().message())));
    filter.matches = *std::move(matches);
  }
  collector_ = std::make_shared<RemarkCollector>(std::move(filter));
  collector_->set_wants_graphs(!steps_.empty());
  return std::nullopt;
}

std::string_view RemarkFlags::given() const {
  if (!categories_.empty()) return "--remarks";
  if (!output_.empty()) return "--remarks-output";
  if (!steps_.empty()) return "--fusion-steps";
  if (!filter_.empty()) return "--remarks-filter";
  return kinds_ == "all" ? "" : "--remarks-kinds";
}

void RemarkFlags::Write(bool elsewhere, DiagnosticReporter* diagnostics) const {
  if (collector_ == nullptr || given().empty()) return;
  const std::vector<Remark>& remarks = collector_->remarks();
  if (!output_.empty()) {
    WriteOutputFile(output_, diagnostics, [&](TextWriter& out) {
      if (EndsWith(output_, ".yaml") || EndsWith(output_, ".yml")) {
        WriteRemarksYaml(remarks, &out);
      } else if (EndsWith(output_, ".json")) {
        JsonWriter json(&out);
        WriteRemarksJson(remarks, &json);
      } else {
        WriteRemarksText(remarks, &out);
      }
    });
  }
  if (!steps_.empty()) {
    WriteOutputFile(steps_, diagnostics, [&](TextWriter& out) {
      if (EndsWith(steps_, ".html")) {
        WriteFusionStepsPage(remarks, &out);
      } else if (EndsWith(steps_, ".dot")) {
        WriteFusionStepsDot(remarks, &out);
      } else {
        WriteFusionStepsText(remarks, &out);
      }
    });
  }
  if (elsewhere || !output_.empty() || (categories_.empty() && !steps_.empty())) return;
  TextWriter out([](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); });
  WriteRemarksText(remarks, &out);
}

}  // namespace hlokit::cli
