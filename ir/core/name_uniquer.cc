// SPDX-License-Identifier: Apache-2.0
#include "ir/core/name_uniquer.h"

#include <algorithm>
#include <charconv>

namespace hlokit {
namespace {

struct NameParts {
  std::string_view root;
  int64_t number = 0;
  bool numbered = false;
  bool leading_zero = false;  // of the number; zero counts as one
};

NameParts PartsOf(std::string_view name) {
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  if (digits == name.size() || digits < 2 || name[digits - 1] != '.') return {.root = name};
  int64_t number = 0;
  if (std::from_chars(name.data() + digits, name.data() + name.size(), number).ec != std::errc()) return {.root = name};
  return {.root = name.substr(0, digits - 1), .number = number, .numbered = true, .leading_zero = name[digits] == '0'};
}

}  // namespace

void NameUniquer::Add(StringId name) {
  const size_t word = name.value / 64;
  if (word >= taken_.size()) taken_.resize(std::max(word, strings_->size() / 64) + 1, 0);
  taken_[word] |= uint64_t{1} << (name.value % 64);
}

std::string_view NameUniquer::Numbered(std::string_view root, int64_t number) {
  constexpr size_t kMaxDigits = 20;
  if (const size_t size = root.size() + 1 + kMaxDigits; candidate_.size() < size) candidate_.resize(size);
  char* digits = std::copy(root.begin(), root.end(), candidate_.data());
  *digits++ = '.';
  const char* end = std::to_chars(digits, digits + kMaxDigits, number).ptr;
  return {candidate_.data(), static_cast<size_t>(end - candidate_.data())};
}

bool NameUniquer::IsRootTaken(std::string_view root, StringId root_id) {
  // "x.5" is the root of "x.5.0", but on its own it is number 5 of "x".
  if (root_id.valid() && IsTaken(root_id) && !PartsOf(root).numbered) return true;
  const StringId zero = strings_->Find(Numbered(root, 0));
  return zero.valid() && IsTaken(zero);
}

StringId NameUniquer::TakeNext(std::string_view root, StringId root_id, bool numbered) {
  if (!root_id.valid()) root_id = strings_->Intern(root);
  int64_t& next = next_[root_id.value];
  if (next == 0) {
    next = 1;
    if (!IsRootTaken(root, root_id)) {
      const StringId free = numbered ? strings_->Intern(Numbered(root, 0)) : root_id;
      Add(free);
      return free;
    }
  }
  while (true) {
    const StringId id = strings_->Intern(Numbered(root, next++));
    if (IsTaken(id)) continue;
    Add(id);
    return id;
  }
}

StringId NameUniquer::GetUniqueName(std::string_view name) {
  return GetUniqueName(strings_->Intern(name.empty() ? "name" : name));
}

StringId NameUniquer::GetUniqueName(StringId id) {
  const std::string_view name = (*strings_)[id];
  if (name.empty()) return GetUniqueName(std::string_view());
  const NameParts parts = PartsOf(name);
  const StringId root_id = parts.numbered ? StringId() : id;
  if (IsTaken(id)) return TakeNext(parts.root, root_id, parts.numbered);
  if (parts.number == 0) {
    if (IsRootTaken(parts.root, parts.numbered ? strings_->Find(parts.root) : id)) {
      return TakeNext(parts.root, root_id, parts.numbered);
    }
    if (parts.numbered) id = strings_->Intern(Numbered(parts.root, 0));
  } else if (parts.leading_zero) {
    id = strings_->Intern(Numbered(parts.root, parts.number));
    if (IsTaken(id)) return TakeNext(parts.root, root_id, parts.numbered);
  }
  Add(id);
  return id;
}

}  // namespace hlokit
