// SPDX-License-Identifier: Apache-2.0
// Checks that the value cases of a directory return the same bits on one thread and on two, after a round trip through
// text and through JSON, and after --passes=dce,cse.
//
//   value_properties DIR…
//
// A case is NAME.hlo with its arguments in NAME.args, one per line, or in the lines `input: …` of NAME.lits. Cases that
// do not run are counted; exit code 1 if results change.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "tests/random/value_round_trips.h"

namespace hlokit::random_test {
namespace {

std::optional<std::string> FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the arguments of the case at `base`; nullopt if it has no file of them.
std::optional<std::string> ArgumentsOf(const std::string& base) {
  if (std::optional<std::string> text = FileText(base + ".args")) return text;
  const std::optional<std::string> lits = FileText(base + ".lits");
  if (!lits) return std::nullopt;
  std::istringstream lines(*lits);
  std::string line, arguments;
  constexpr std::string_view kInput = "input:";
  while (std::getline(lines, line)) {
    if (line.starts_with(kInput)) arguments += line.substr(kInput.size()) + "\n";
  }
  return arguments;
}

int Run(int argc, char** argv) {
  int failed = 0;
  for (int i = 1; i < argc; ++i) {
    std::vector<std::string> bases;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i], error)) {
      if (entry.path().extension() == ".hlo") bases.push_back(std::filesystem::path(entry.path()).replace_extension());
    }
    if (error) {
      std::fprintf(stderr, "value_properties: %s: %s\n", argv[i], error.message().c_str());
      return 2;
    }
    std::sort(bases.begin(), bases.end());
    int held = 0, not_run = 0, bad = 0;
    for (const std::string& base : bases) {
      RoundTripOptions options;
      options.arguments = ArgumentsOf(base);
      options.must_run = false;
      options.mixed_precision = interp::MixedPrecisionMode::kReinterpret;
      const RoundTripResult result = CheckRoundTrips(*FileText(base + ".hlo"), options);
      if (!result.failure.empty() && result.ran) {
        ++bad;
        std::printf("%s: %s\n", base.c_str(), result.failure.c_str());
      } else {
        ++(result.ran ? held : not_run);
      }
    }
    std::printf("%s: %d of %zu cases held, %d did not run, %d failed\n", argv[i], held, bases.size(), not_run, bad);
    failed += bad;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hlokit::random_test

int main(int argc, char** argv) { return hlokit::random_test::Run(argc, argv); }
