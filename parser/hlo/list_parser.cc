// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/list_parser.h"

namespace hlokit {

bool ParseIntegers(TextCursor& in, char open, char close, std::vector<int64_t>* list) {
  if (!in.Expect(open, "before a list of integers")) return false;
  if (in.TryConsume(close)) return true;
  do {
    int64_t value;
    if (!in.Int(&value)) return false;
    list->push_back(value);
  } while (in.TryConsume(','));
  return in.Expect(close, "after a list of integers");
}

bool ParseIntegerLists(TextCursor& in, std::vector<int64_t>* list) {
  if (!in.Expect('{', "before a list of lists")) return false;
  if (in.TryConsume('}')) return true;
  do {
    const size_t count_at = list->size();
    list->push_back(0);
    if (!ParseIntegers(in, '{', '}', list)) return false;
    (*list)[count_at] = static_cast<int64_t>(list->size() - count_at - 1);
  } while (in.TryConsume(','));
  return in.Expect('}', "after a list of lists");
}

bool ParseBools(TextCursor& in, std::vector<int64_t>* list, bool allow_single) {
  bool value;
  if (allow_single && in.Peek() != '{') {
    if (!in.Bool(&value)) return false;
    list->push_back(value);
    return true;
  }
  if (!in.Expect('{', "before a list of booleans")) return false;
  if (in.TryConsume('}')) return true;
  do {
    if (!in.Bool(&value)) return false;
    list->push_back(value);
  } while (in.TryConsume(','));
  return in.Expect('}', "after a list of booleans");
}

}  // namespace hlokit
