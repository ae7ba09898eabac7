// SPDX-License-Identifier: Apache-2.0
#include "tests/hostile/mutation.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

namespace hlokit::hostile {
namespace {

struct Word {
  size_t begin, size;
};

bool IsWordByte(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-'; }

// Words and numbers, each in one list.
void Split(const std::string& text, std::vector<Word>* numbers, std::vector<Word>* words) {
  for (size_t i = 0; i < text.size();) {
    if (!IsWordByte(text[i])) {
      ++i;
      continue;
    }
    const size_t begin = i;
    while (i < text.size() && IsWordByte(text[i])) ++i;
    const bool number = std::isdigit(static_cast<unsigned char>(text[begin])) != 0;
    (number ? numbers : words)->push_back({begin, i - begin});
  }
}

}  // namespace

std::optional<MutationFlags> ParseMutationFlags(int argc, char** argv) {
  MutationFlags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--mutations=")) {
      flags.mutations = std::atoll(argv[i] + 12);
    } else if (argument.starts_with("--every=")) {
      flags.every = static_cast<size_t>(std::max(1, std::atoi(argv[i] + 8)));
    } else if (argument.starts_with("--seconds=")) {
      flags.seconds = std::atof(argv[i] + 10);
    } else if (argument.starts_with("--seed=")) {
      flags.seed = std::strtoull(argv[i] + 7, nullptr, 10);
    } else {
      flags.files.emplace_back(argument);
    }
  }
  if (!flags.files.empty()) return flags;
  std::fprintf(stderr, "usage: %s [--mutations=N] [--every=N] [--seconds=S] [--seed=N] FILE...\n", argv[0]);
  return std::nullopt;
}

std::string MutateBytes(const std::string& text, std::mt19937_64& random) {
  static constexpr std::string_view kAlphabet = "{}[](),=%:0123456789-\"<>_ \n#*?ax\\'";
  std::string t = text;
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (size_t changes = 1 + below(8); changes > 0 && !t.empty(); --changes) {
    const size_t at = below(t.size());
    switch (below(6)) {
      case 0:
      case 1:
        t[at] = kAlphabet[below(kAlphabet.size())];
        break;
      case 2:
        t[at] = static_cast<char>(below(256));
        break;
      case 3:
        t.erase(at, 1 + below(12));
        break;
      case 4:
        t.insert(at, 1, kAlphabet[below(kAlphabet.size())]);
        break;
      case 5:
        t.insert(at, t.substr(below(t.size()), 1 + below(60)));
        break;
    }
  }
  return t;
}

std::string MutateWords(const std::string& text, std::mt19937_64& random) {
  static constexpr std::string_view kNumbers[] = {"0", "1", "-1", "2", "7", "64", "4294967295", "9223372036854775807"};
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  std::string t = text;
  for (size_t changes = 1 + below(3); changes > 0; --changes) {
    std::vector<Word> numbers, words;
    Split(t, &numbers, &words);
    const bool number = !numbers.empty() && (words.empty() || below(2) == 0);
    const std::vector<Word>& from = number ? numbers : words;
    if (from.empty()) return t;
    const Word old = from[below(from.size())], other = from[below(from.size())];
    const std::string put =
        number && below(2) == 0 ? std::string(kNumbers[below(std::size(kNumbers))]) : t.substr(other.begin, other.size);
    t.replace(old.begin, old.size, put);
  }
  return t;
}

}  // namespace hlokit::hostile
