// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/text/regex.h"

#include <re2/re2.h>

#include <memory>

#include "ir/core/str_cat.h"

namespace hlokit::cli {
namespace {

std::shared_ptr<const re2::RE2> Compile(std::string_view expression) {
  return std::make_shared<const re2::RE2>(re2::StringPiece(expression.data(), expression.size()), re2::RE2::Quiet);
}

}  // namespace

absl::StatusOr<std::function<bool(std::string_view)>> CompileRegex(std::string_view expression) {
  const auto compiled = Compile(expression);
  if (!compiled->ok()) return absl::InvalidArgumentError(StrCat("bad regular expression: ", compiled->error()));
  return [compiled](std::string_view text) {
    return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *compiled);
  };
}

absl::StatusOr<std::function<bool(std::string_view)>> CompileWholeRegex(std::string_view expression) {
  const auto compiled = Compile(expression);
  if (!compiled->ok()) return absl::InvalidArgumentError(StrCat("`", expression, "`: ", compiled->error()));
  return [compiled](std::string_view text) {
    return re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), *compiled);
  };
}

}  // namespace hlokit::cli
