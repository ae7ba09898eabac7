// SPDX-License-Identifier: Apache-2.0
// Reads and writes small files of tests.
#ifndef HLOKIT_TESTS_UNIT_FILES_H_
#define HLOKIT_TESTS_UNIT_FILES_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace hlokit {

// Returns the path as text.
inline std::string WriteFile(const std::filesystem::path& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  EXPECT_TRUE(out.good()) << path;
  return path.string();
}

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace hlokit

#endif  // HLOKIT_TESTS_UNIT_FILES_H_
