// SPDX-License-Identifier: Apache-2.0
#include "check/bisection/reduced_program.h"

#include <memory>
#include <string_view>
#include <utility>

#include "parser/formats/parser.h"

namespace hlokit::interp {

absl::StatusOr<std::string> ReduceBeforePass(const BisectionResult& found, BisectionOptions options,
                                             reduce::ReductionOptions reduction) {
  options.progress = nullptr;
  const absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(found.before);
  if (!module.ok()) return module.status();
  const auto differs = [&](std::string_view text) {
    const absl::StatusOr<std::unique_ptr<Module>> candidate = ParseModuleText(text);
    if (!candidate.ok()) return false;
    const absl::StatusOr<std::string> difference = DifferenceAfter(**candidate, found.pass, options);
    return difference.ok() && !difference->empty();
  };
  reduction.record = [&](const Module& candidate) { return RecordEntryValues(candidate, options.run); };
  absl::StatusOr<reduce::ReductionResult> result = reduce::Reduce(**module, differs, reduction);
  if (!result.ok()) return result.status();
  return std::move(result->text);
}

}  // namespace hlokit::interp
