// SPDX-License-Identifier: Apache-2.0
// Scanning agrees with a byte-by-byte search, at every distance from the end of the text.
#include "parser/text/scan.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hlokit {
namespace {

// A copy whose last byte is the last of its allocation, so that a sanitizer detects reads beyond it.
class Exact {
 public:
  explicit Exact(std::string_view text) : bytes_(text.begin(), text.end()) {}
  const char* begin() const { return bytes_.data(); }
  const char* end() const { return bytes_.data() + bytes_.size(); }

 private:
  std::vector<char> bytes_;
};

TEST(ScanTest, NamesEndAtEveryOtherByte) {
  for (int c = 0; c < 256; ++c) {
    const bool name = std::isalnum(c) != 0 ? c < 128 : c == '_' || c == '.' || c == '-';
    for (size_t at : {0, 1, 15, 16, 17, 40}) {
      std::string text(48, 'x');
      text[at] = static_cast<char>(c);
      const Exact exact(text);
      EXPECT_EQ(scan::NameEnd(exact.begin(), exact.end()) - exact.begin(), name ? 48 : static_cast<int64_t>(at))
          << c << " at " << at;
    }
  }
}

TEST(ScanTest, NothingBehindTheEndIsRead) {
  for (size_t size = 0; size < 70; ++size) {
    const Exact exact(std::string(size, 'a'));
    EXPECT_EQ(scan::NameEnd(exact.begin(), exact.end()), exact.end());
    EXPECT_EQ((scan::FindAny<'x', '}'>(exact.begin(), exact.end())), exact.end());
    const Exact open("{" + std::string(size, 'a'));
    EXPECT_EQ(scan::BracedEnd(open.begin(), open.end()), nullptr);
    const Exact quoted("{\"" + std::string(size, 'a') + "\\");
    EXPECT_EQ(scan::BracedEnd(quoted.begin(), quoted.end()), nullptr);
  }
}

TEST(ScanTest, TheFirstOfSeveralIsFound) {
  for (size_t at = 0; at < 64; ++at) {
    std::string text(64, 'a');
    text[at] = '}';
    for (size_t later = at + 1; later < 64; ++later) text[later] = later % 2 == 0 ? '{' : '}';
    const Exact exact(text);
    EXPECT_EQ((scan::FindAny<'{', '}'>(exact.begin(), exact.end())) - exact.begin(), static_cast<int64_t>(at));
  }
}

TEST(ScanTest, BracesCloseOutsideOfQuotes) {
  const auto braced = [](std::string_view text) {
    const Exact exact(text);
    const char* close = scan::BracedEnd(exact.begin(), exact.end());
    return close == nullptr ? -1 : close - exact.begin();
  };
  EXPECT_EQ(braced("{}x"), 2);
  EXPECT_EQ(braced("{{0,1},{2}},"), 11);
  EXPECT_EQ(braced(R"({a="}"} })"), 7);
  EXPECT_EQ(braced(R"({a="\"}"} })"), 9);
  EXPECT_EQ(braced(R"({a="\\"} })"), 8);
  EXPECT_EQ(braced("{{}"), -1);
  EXPECT_EQ(braced(R"({a="})"), -1);
}

}  // namespace
}  // namespace hlokit
