// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/operand_alias.h"

#include <cstddef>

namespace hlokit {

std::optional<OperandAlias> NextOperandAlias(absl::Span<const int64_t>* encoded) {
  const auto take = [encoded](absl::Span<const int64_t>* list) {
    if (encoded->empty()) return false;
    const int64_t size = encoded->front();
    encoded->remove_prefix(1);
    if (size < 0 || static_cast<size_t>(size) > encoded->size()) return false;
    *list = encoded->first(static_cast<size_t>(size));
    encoded->remove_prefix(static_cast<size_t>(size));
    return true;
  };
  OperandAlias alias;
  if (!take(&alias.output_index) || encoded->empty()) return std::nullopt;
  alias.operand = encoded->front();
  encoded->remove_prefix(1);
  if (!take(&alias.operand_index)) return std::nullopt;
  return alias;
}

}  // namespace hlokit
