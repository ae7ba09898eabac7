// SPDX-License-Identifier: Apache-2.0
#include "ir/text/sorted_json.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace hlokit {
namespace {

class Sorter {
 public:
  explicit Sorter(std::string_view text) : text_(text) {}

  bool Whole(std::string* out) { return Value(0, out) && (SkipSpace(), at_ == text_.size()); }

 private:
  static constexpr int kMaxDepth = 256;

  void SkipSpace() {
    while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  bool Consume(char c) {
    SkipSpace();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool Value(int depth, std::string* out) {
    SkipSpace();
    if (at_ == text_.size() || depth > kMaxDepth) return false;
    if (text_[at_] == '{') return Sequence(depth, '}', out);
    if (text_[at_] == '[') return Sequence(depth, ']', out);
    return text_[at_] == '"' ? Quoted(out) : Word(out);
  }

  // An object or an array, up to `end`.
  bool Sequence(int depth, char end, std::string* out) {
    const bool object = end == '}';
    *out += text_[at_++];
    std::vector<std::string> elements;
    if (!Consume(end)) {
      do {
        std::string& element = elements.emplace_back();
        if (object) {
          SkipSpace();
          if (!Quoted(&element) || !Consume(':')) return false;
          element += ':';
        }
        if (!Value(depth + 1, &element)) return false;
      } while (Consume(','));
      if (!Consume(end)) return false;
    }
    if (object) std::sort(elements.begin(), elements.end());
    for (size_t k = 0; k < elements.size(); ++k) {
      if (k != 0) *out += ',';
      *out += elements[k];
    }
    *out += end;
    return true;
  }

  bool Quoted(std::string* out) {
    const size_t begin = at_;
    if (at_ == text_.size() || text_[at_] != '"') return false;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '"') {
        *out += text_.substr(begin, ++at_ - begin);
        return true;
      }
    }
    return false;
  }

  // A number, true, false or null.
  bool Word(std::string* out) {
    const size_t begin = at_;
    while (at_ < text_.size() && (absl::ascii_isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-' ||
                                  text_[at_] == '+' || text_[at_] == '.')) {
      ++at_;
    }
    const std::string_view word = text_.substr(begin, at_ - begin);
    double number;
    const bool is_number = !word.empty() &&
                           (absl::ascii_isdigit(static_cast<unsigned char>(word[0])) || word[0] == '-') &&
                           absl::SimpleAtod(absl::string_view(word.data(), word.size()), &number);
    *out += word;
    return is_number || word == "true" || word == "false" || word == "null";
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::optional<std::string> SortedJson(std::string_view text) {
  std::string out;
  if (!Sorter(text).Whole(&out)) return std::nullopt;
  return out;
}

}  // namespace hlokit
