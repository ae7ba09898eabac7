// SPDX-License-Identifier: Apache-2.0
#include "pjrt/execution/memory_kinds.h"

#include <string>
#include <string_view>

#include "ir/core/str_cat.h"
#include "pjrt/client/topology.h"
#include "pjrt/execution/entry_attributes.h"

namespace hlokit::pjrt {
namespace {

// Digits, one a leaf: positions in kMemoryKinds, of parameters before those of results.
constexpr std::string_view kAttribute = "hlokit.memory_kinds";
constexpr std::string_view kMlirName = "mhlo.memory_kind";

// Returns the kind that a leaf names, or that of its memory space.
absl::StatusOr<size_t> KindOf(const EntryLeaf& leaf) {
  if (!leaf.value.empty()) {
    for (size_t number = 0; number < std::size(kMemoryKinds); ++number) {
      if (kMemoryKinds[number] == leaf.value) return number;
    }
    return absl::InvalidArgumentError(
        StrCat("there is no memory kind `", leaf.value, "`; there are device, pinned_host, unpinned_host"));
  }
  const Shape shape = leaf.shape;
  return shape.IsArray() && shape.has_layout() && shape.layout()->memory_space() == kHostMemorySpace ? 1 : 0;
}

}  // namespace

absl::Status MarkMemoryKinds(Module* module) {
  std::string digits;
  for (const EntryLeaf& leaf : EntryLeaves(*module, kMlirName)) {
    const absl::StatusOr<size_t> kind = KindOf(leaf);
    if (!kind.ok()) return kind.status();
    digits.push_back(static_cast<char>('0' + *kind));
  }
  if (digits.find_first_not_of('0') != digits.npos) SetHeaderAttribute(module, kAttribute, digits);
  return absl::OkStatus();
}

void ReadMemoryKinds(const Module& module, absl::Span<ProgramValue> parameters, absl::Span<ProgramValue> results) {
  const std::string_view digits = HeaderAttribute(module, kAttribute);
  if (digits.size() != parameters.size() + results.size()) return;
  for (size_t i = 0; i < digits.size(); ++i) {
    ProgramValue& value = i < parameters.size() ? parameters[i] : results[i - parameters.size()];
    const auto kind = static_cast<size_t>(digits[i] - '0');
    value.memory_kind = kind < std::size(kMemoryKinds) ? kind : 0;
  }
}

}  // namespace hlokit::pjrt
