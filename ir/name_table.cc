#include "ir/name_table.h"

#include <algorithm>
#include <charconv>

#include "ir/str_cat.h"

namespace hlokit {
namespace {

struct NameParts {
  std::string_view root;
  int64_t number = 0;
  bool numbered = false;
  bool leading_zero = false;  // of the number; zero itself has one
};

NameParts PartsOf(std::string_view name) {
  NameParts parts{.root = name};
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || dot + 1 == name.size()) return parts;
  const char* begin = name.data() + dot + 1;
  const char* end = name.data() + name.size();
  int64_t value;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end || value < 0) return parts;
  return {.root = name.substr(0, dot), .number = value, .numbered = true, .leading_zero = *begin == '0'};
}

}  // namespace

void UniqueNames::Add(StringId name) {
  const size_t word = name.value / 64;
  if (word >= taken_.size()) taken_.resize(std::max(word, strings_->size() / 64) + 1, 0);
  taken_[word] |= uint64_t{1} << (name.value % 64);
}

bool UniqueNames::IsZeroTaken(std::string_view root) const {
  // "x.5" is the root of "x.5.0", but by itself number 5 of "x".
  if (!PartsOf(root).numbered) {
    const StringId bare = strings_->Find(root);
    if (bare.valid() && IsTaken(bare)) return true;
  }
  const StringId zero = strings_->Find(StrCat(root, ".0"));
  return zero.valid() && IsTaken(zero);
}

StringId UniqueNames::TakeNext(std::string_view root, StringId root_id, bool numbered) {
  candidate_.assign(root);
  root = candidate_;
  if (!root_id.valid()) root_id = strings_->Intern(root);
  int64_t& next = next_[root_id.value];
  if (next == 0) {
    next = 1;
    if (!IsZeroTaken(root)) {
      if (!numbered) {
        Add(root_id);
        return root_id;
      }
      const StringId zero = strings_->Intern(StrCat(root, ".0"));
      Add(zero);
      return zero;
    }
  }
  const size_t prefix = root.size() + 1;
  candidate_.push_back('.');
  while (true) {
    char digits[24];
    const char* end = std::to_chars(digits, digits + sizeof(digits), next++).ptr;
    candidate_.resize(prefix);
    candidate_.append(digits, static_cast<size_t>(end - digits));
    const StringId id = strings_->Intern(candidate_);
    if (IsTaken(id)) continue;
    Add(id);
    return id;
  }
}

StringId UniqueNames::Take(std::string_view name) { return Take(strings_->Intern(name.empty() ? "name" : name)); }

StringId UniqueNames::Take(StringId id) {
  const std::string_view name = (*strings_)[id];
  if (name.empty()) return Take(std::string_view());
  const NameParts parts = PartsOf(name);
  const StringId root_id = parts.numbered ? StringId() : id;
  if (IsTaken(id)) return TakeNext(parts.root, root_id, parts.numbered);
  if (parts.number == 0) {
    if (IsZeroTaken(parts.root)) return TakeNext(parts.root, root_id, parts.numbered);
    if (parts.numbered) id = strings_->Intern(StrCat(parts.root, ".0"));
  } else if (parts.leading_zero) {
    id = strings_->Intern(StrCat(parts.root, '.', parts.number));
    if (IsTaken(id)) return TakeNext(parts.root, root_id, parts.numbered);
  }
  Add(id);
  return id;
}

}  // namespace hlokit
