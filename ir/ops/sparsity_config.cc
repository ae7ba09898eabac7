// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/sparsity_config.h"

#include <charconv>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

// Returns the number after "key=" in `fields`, or `fallback`.
int64_t Field(std::string_view fields, std::string_view key, int64_t fallback) {
  const size_t at = fields.find(StrCat(key, "="));
  if (at == std::string_view::npos) return fallback;
  int64_t value = fallback;
  std::from_chars(fields.data() + at + key.size() + 1, fields.data() + fields.size(), value);
  return value;
}

absl::StatusOr<std::optional<TensorSparsityConfig>> ParseSide(std::string_view text, std::string_view name,
                                                              std::string_view what) {
  const size_t begin = text.find(StrCat(name, "={"));
  if (begin == std::string_view::npos) return std::optional<TensorSparsityConfig>();
  std::string_view fields = text.substr(begin + name.size() + 2);
  fields = fields.substr(0, fields.find('}'));
  TensorSparsityConfig side;
  constexpr std::string_view kKey = "sparsity=";
  const size_t at = fields.find(kKey);
  bool ok = at != std::string_view::npos;
  if (ok) {
    const char* end = fields.data() + fields.size();
    const auto kept = std::from_chars(fields.data() + at + kKey.size(), end, side.num_non_zero);
    ok = kept.ec == std::errc() && kept.ptr != end && *kept.ptr == 'x' &&
         std::from_chars(kept.ptr + 1, end, side.block_size).ec == std::errc() && side.num_non_zero >= 1 &&
         side.block_size >= side.num_non_zero;
  }
  if (!ok) return absl::InvalidArgumentError(StrCat("the sparsity of the ", what, " must be NxM with M >= N >= 1"));
  side.dimension = Field(fields, "dimension", 0);
  side.stride = Field(fields, "stride", 0);
  if (side.stride == 0) side.stride = 1;  // the text has 0 for an omitted stride
  if (side.stride < 0)
    return absl::InvalidArgumentError(StrCat("the stride of the sparsity of the ", what, " must be at least 1"));
  side.indices_operand = Field(fields, "idx", 0);
  return std::optional<TensorSparsityConfig>(side);
}

}  // namespace

absl::StatusOr<SparsityConfig> SparsityConfig::Parse(std::string_view text) {
  SparsityConfig config;
  absl::StatusOr<std::optional<TensorSparsityConfig>> lhs = ParseSide(text, "lhs", "input");
  if (!lhs.ok()) return lhs.status();
  absl::StatusOr<std::optional<TensorSparsityConfig>> rhs = ParseSide(text, "rhs", "kernel");
  if (!rhs.ok()) return rhs.status();
  config.lhs = *lhs;
  config.rhs = *rhs;
  return config;
}

}  // namespace hlokit
