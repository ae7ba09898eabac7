// SPDX-License-Identifier: Apache-2.0
// The text of an operation after its operands: attributes and types. Programs repeat few of them very often. An
// operation whose tail is that of an earlier one, with operands of the same types, has that one's attributes and types,
// without reading them again.
#include <cstring>

#include "parser/mlir/operation_parser.h"

namespace hlokit::mlir {
namespace {

// Returns the text up to the end of the line, or to the location that ends it.
std::string_view TailAt(const char* begin, const char* end) {
  if (const void* newline = std::memchr(begin, '\n', static_cast<size_t>(end - begin))) {
    end = static_cast<const char*>(newline);
  }
  constexpr std::string_view kLocation = " loc(";
  constexpr ptrdiff_t kMaxLocation = 1 << 10;
  if (end == begin || end[-1] != ')') return {begin, static_cast<size_t>(end - begin)};
  const char* p = end - 1;
  for (const char* const stop = end - begin > kMaxLocation ? end - kMaxLocation : begin; p > stop; --p) {
    if (*p != '(' || static_cast<size_t>(p + 1 - stop) < kLocation.size()) continue;
    const char* const start = p + 1 - kLocation.size();
    if (std::string_view(start, kLocation.size()) == kLocation) return {begin, static_cast<size_t>(start - begin)};
  }
  return {begin, static_cast<size_t>(end - begin)};
}

// Returns true for what begins an operation, ends a region, or is a location: no part of the operation before it.
bool EndsOperation(char c) { return c == '%' || c == '}' || c == '"' || c == '^' || (c >= 'a' && c <= 'z'); }

}  // namespace

bool OperationParser::TakeKnownTail() {
  OpenOperation& current = op();
  current.tail = TailAt(in_.at(), in_.end());
  if (current.tail.empty()) return false;
  const size_t operands = operands_.size() - current.operands;
  const size_t attributes = attributes_.size() - current.attributes;
  uint64_t kind = MixHash(current.name.value, operands * 2 + (current.generic ? 1 : 0));
  for (size_t i = 0; i < attributes; ++i) kind = MixHash(kind, attributes_[current.attributes + i].value.value);
  current.tail_kind = static_cast<uint32_t>(kind >> 32);
  current.tail_operands = operands_.size();
  const KnownTail* const known = known_tails_.Find(current.tail, current.tail_kind);
  if (known == nullptr) return false;
  const Operation& same = m_.op(known->operation);
  if (same.name != current.name || same.operand_count != operands || same.attribute_count < attributes) return false;
  const absl::Span<const ValueId> values = m_.operands_of(same);
  for (size_t i = 0; i < operands; ++i) {
    const ValueId value = operands_[current.operands + i].value;
    if (!value.valid() || !values[i].valid() || m_.type(value) != m_.type(values[i])) return false;
  }
  // Attributes in front of the operands.
  for (size_t i = 0; i < attributes; ++i) {
    const Attribute& own = attributes_[current.attributes + i];
    if (m_.attribute(same, m_.nodes.str(own.name)) != own.value) return false;
  }
  const char* const before = in_.at();
  in_.set_at(current.tail.data() + current.tail.size());
  if (!in_.AtEnd() && !EndsOperation(in_.Peek())) {
    in_.set_at(before);
    return false;
  }
  current.same_as = known->operation;
  current.tree_size = known->tree_size;
  return true;
}

bool OperationParser::TailEndsHere() {
  const OpenOperation& current = op();
  if (current.tail.empty() || operands_.size() != current.tail_operands) return false;
  if (region_list_.size() != current.regions || !current.successors.empty()) return false;
  // The cursor is at the end of the tail, or in the whitespace after it.
  const char* const at = in_.at();
  in_.set_at(current.tail.data() + current.tail.size());
  in_.Skip();
  const bool ends =
      at >= current.tail.data() + current.tail.size() && at <= in_.at() && (in_.AtEnd() || EndsOperation(in_.Peek()));
  in_.set_at(at);
  return ends;
}

}  // namespace hlokit::mlir
