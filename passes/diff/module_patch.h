// SPDX-License-Identifier: Apache-2.0
// A difference of two modules that turns the first into the second: new names of instructions and computations, and the
// lines of the second module's text that are not lines of the first's after renaming.
#ifndef HLOKIT_PASSES_DIFF_MODULE_PATCH_H_
#define HLOKIT_PASSES_DIFF_MODULE_PATCH_H_

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/core/json_writer.h"
#include "ir/graph/module.h"
#include "passes/diff/matching.h"

namespace hlokit {

struct ModulePatch {
  // Of the first module's text in lossless form: 32 hexadecimal digits.
  std::string base_digest;
  // Names that change, from and to.
  std::vector<std::pair<std::string, std::string>> instructions, computations;
  // The second module's text in lossless form: lines (first, number) of the first's after renaming, from 0, or new
  // lines.
  struct Lines {
    size_t first = 0;
    size_t count = 0;
  };
  std::vector<std::variant<Lines, std::string>> text;
};

// Linear in the texts.
ModulePatch MakePatch(const Module& a, const Module& b, const ModuleMatching& matching);

// Writes the members of an object: `base`, `rename_instructions`, `rename_computations`, `text`.
void WriteJson(const ModulePatch& patch, JsonWriter* json);

// Reads the member `patch` of a JSON object, as hlo-diff --json prints it.
absl::StatusOr<ModulePatch> ReadPatch(std::string_view json);

// Returns the text of the second module. An error if the patch is of another module than `a`.
absl::StatusOr<std::string> ApplyPatch(const Module& a, const ModulePatch& patch);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_DIFF_MODULE_PATCH_H_
