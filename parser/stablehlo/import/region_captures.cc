// SPDX-License-Identifier: Apache-2.0
// The values that regions use from outside: parameters of the computations that are made of them.
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "parser/stablehlo/import/converter.h"
#include "parser/stablehlo/kept_attributes.h"

namespace hlokit::stablehlo {

bool Converter::IsConstant(mlir::ValueId value) const {
  const mlir::OperationId id = program_.values[value.value].definition;
  if (!id.valid()) return false;
  return program_.kind(id) == OpKind::kStablehloConstant || program_.kind(id) == OpKind::kArithConstant;
}

// One pass over the program: readers number regions before those in them, so that the list of a region is made of its
// operations and of the lists of the regions in it, in the order of the operations, whose regions come before them.
bool Converter::FindCaptures() {
  constexpr size_t kMaxCaptures = size_t{1} << 24;  // nested regions list a value again
  if (!captures_of_.empty()) return captures_.size() <= kMaxCaptures;
  captures_of_.resize(program_.regions.size());
  std::vector<uint32_t> listed(program_.values.size());  // 1 + the region whose list got the value last
  for (size_t number = program_.regions.size(); number-- > 0;) {
    const mlir::Region& region = program_.regions[number];
    const auto mark = static_cast<uint32_t>(number + 1);
    const auto is_inside = [&](mlir::ValueId value) {
      return value.value >= region.value_begin && value.value < region.value_end;
    };
    const auto add = [&](mlir::ValueId value) {
      if (std::exchange(listed[value.value], mark) != mark) captures_.push_back(value);
    };
    const size_t begin = captures_.size();
    for (mlir::BlockId block = region.first; block.valid(); block = program_.blocks[block.value].next) {
      for (mlir::OperationId id = program_.blocks[block.value].first; id.valid(); id = program_.op(id).next) {
        const Op& op = program_.op(id);
        for (mlir::RegionId inner : program_.regions_of(op)) {
          const auto [inner_begin, inner_end] = captures_of_[inner.value];
          for (size_t i = inner_begin; i < inner_end; ++i) {
            if (!is_inside(captures_[i])) add(captures_[i]);
          }
        }
        for (mlir::ValueId value : program_.operands_of(op)) {
          // Constants are copied into regions, as XLA's compilers do first.
          if (is_inside(value) || (IsConstant(value) && !options_.as_xla && !Attribute(op, kOperand).valid())) continue;
          add(value);
        }
      }
    }
    captures_of_[number] = {begin, captures_.size()};
    if (captures_.size() > kMaxCaptures) return false;
  }
  return true;
}

std::vector<mlir::ValueId> Converter::CapturesOf(absl::Span<const mlir::RegionId> regions) const {
  std::vector<mlir::ValueId> captures;
  absl::flat_hash_set<uint32_t> listed;
  for (mlir::RegionId id : regions) {
    const auto [begin, end] = captures_of_[id.value];
    for (size_t i = begin; i < end; ++i) {
      if (regions.size() == 1 || listed.insert(captures_[i].value).second) captures.push_back(captures_[i]);
    }
  }
  return captures;
}

}  // namespace hlokit::stablehlo
