// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/flags/custom_call_flag.h"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "interp/custom_calls/process_calls.h"
#include "ir/core/str_cat.h"
#include "tools/cli/final_note.h"
#include "tools/cli/text/regex.h"

namespace hlokit::cli {
namespace {

// Returns the note about stubbed targets; "" if there are none.
std::string StubbedCallsNote() {
  const std::vector<std::string> targets = interp::StubbedTargets();
  std::string list;
  for (const std::string& target : targets) StrAppend(&list, list.empty() ? "" : ", ", target);
  return list.empty() ? "" : StrCat("note: results of these custom calls are made up: ", list);
}

}  // namespace

CLI::Option* AddStubCustomCalls(CLI::App* app) {
  // Its effect is that of `each`: the value is not kept.
  static std::string pattern;
  return app
      ->add_flag(
          "--stub-custom-calls{.*}", pattern,
          "custom calls without a function return made-up values, a fixed function of their operands; =REGEX: those "
          "whose target matches")
      ->each([](const std::string& expression) {
        absl::StatusOr<std::function<bool(std::string_view)>> matches = CompileRegex(expression);
        if (!matches.ok()) throw CLI::ValidationError("--stub-custom-calls", std::string(matches.status().message()));
        interp::StubProcessCalls(*std::move(matches));
        SetFinalNote(StubbedCallsNote);
      });
}

}  // namespace hlokit::cli
