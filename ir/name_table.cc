#include "ir/name_table.h"

#include <charconv>

#include "absl/strings/string_view.h"
#include "ir/str_cat.h"

namespace hlokit {

std::string UniqueNames::Take(std::string_view name) {
  if (name.empty()) name = "name";
  std::string_view root = name;
  int64_t number = 0;
  bool numbered = false;
  const size_t dot = name.rfind('.');
  if (dot != std::string_view::npos && dot > 0 && dot + 1 < name.size()) {
    const char* begin = name.data() + dot + 1;
    const char* end = name.data() + name.size();
    int64_t value;
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error == std::errc() && stop == end && value >= 0) {
      number = value;
      numbered = true;
      root = name.substr(0, dot);
    }
  }
  Numbers& numbers = roots_[absl::string_view(root.data(), root.size())];
  if (!numbers.used.insert(number).second) {
    while (!numbers.used.insert(numbers.next).second) ++numbers.next;
    number = numbers.next++;
  } else if (!numbered || name[dot + 1] != '0') {
    return std::string(name);
  }
  if (number == 0) return numbered ? StrCat(root, ".0") : std::string(root);
  return StrCat(root, '.', number);
}

}  // namespace hlokit
