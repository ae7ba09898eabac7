// SPDX-License-Identifier: Apache-2.0
#include "parser/stablehlo/refine/refine_passes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "ir/core/str_cat.h"
#include "parser/stablehlo/refine/argument_sizes.h"

namespace hlokit::stablehlo {
namespace {

// "tensor<8x4xf32>" of argument N is "argN=8x4"; "" if it is no such type.
std::string SizesOfType(std::string_view type, size_t argument) {
  constexpr std::string_view kTensor = "tensor<";
  if (!type.starts_with(kTensor) || !type.ends_with('>')) return "";
  type = type.substr(kTensor.size(), type.size() - kTensor.size() - 1);
  size_t end = 0;
  for (size_t at = 0; at < type.size();) {
    const size_t cross = type.find('x', at);
    const bool number = cross != std::string_view::npos && cross != at &&
                        type.substr(at, cross - at).find_first_not_of("0123456789") == std::string_view::npos;
    if (!number) break;
    end = at = cross + 1;
  }
  return StrCat("arg", argument, "=", end == 0 ? "" : type.substr(0, end - 1));
}

}  // namespace

absl::StatusOr<RefineOptions> ParseRefinePasses(std::string_view text) {
  constexpr std::string_view kPrefix = "stablehlo-", kArguments = "refine-arguments", kTypes = "types=";
  constexpr std::string_view kNames[] = {kArguments, "refine-shapes", "canonicalize-dynamism"};
  RefineOptions options;
  options.shapes = options.dynamism = false;
  size_t next = 0;
  for (std::string_view pass : SplitList(text)) {
    if (pass.starts_with(kPrefix)) pass.remove_prefix(kPrefix.size());
    const size_t brace = std::min(pass.find('{'), pass.size());
    const std::string_view name = pass.substr(0, brace);
    const auto* const found = std::find(std::begin(kNames) + next, std::end(kNames), name);
    if (found == std::end(kNames)) {
      return absl::InvalidArgumentError(
          StrCat("expected some of stablehlo-refine-arguments{types=...}, stablehlo-refine-shapes "
                 "and stablehlo-canonicalize-dynamism, in this order, found `",
                 pass, "`"));
    }
    next = static_cast<size_t>(found - std::begin(kNames)) + 1;
    if (name == kNames[1]) options.shapes = true;
    if (name == kNames[2]) options.dynamism = true;
    if (name != kArguments) continue;
    std::string_view list = pass.substr(brace);
    if (!list.starts_with('{') || !list.ends_with('}') || !list.substr(1).starts_with(kTypes)) {
      return absl::InvalidArgumentError(
          "stablehlo-refine-arguments takes the types of all arguments: {types=tensor<8x4xf32>}");
    }
    list = list.substr(1 + kTypes.size(), list.size() - 2 - kTypes.size());
    const std::vector<std::string_view> types = SplitList(list);
    for (size_t i = 0; i < types.size(); ++i) {
      if (std::string sizes = SizesOfType(types[i], i); !sizes.empty()) options.sizes.push_back(std::move(sizes));
    }
  }
  return options;
}

}  // namespace hlokit::stablehlo
