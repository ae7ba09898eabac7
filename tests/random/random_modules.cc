// SPDX-License-Identifier: Apache-2.0
// Generates random modules and checks that each verifies, runs, and returns the same values after round trips.
//
//   random_modules [--count=N] [--seed=N] [--print] [--seconds=N]
//
// The first modules each contain one opcode of the table; exit code 1 if one of them does not run. Without --seed the
// seeds start at 0. --print writes the one module of --seed instead.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ops/opcode.h"
#include "tests/random/random_module.h"
#include "tests/random/value_round_trips.h"

namespace hlokit::random_test {
namespace {

bool Flag(std::string_view argument, std::string_view name, uint64_t* value) {
  if (!argument.starts_with(name)) return false;
  *value = std::strtoull(std::string(argument.substr(name.size())).c_str(), nullptr, 10);
  return true;
}

RandomModuleOptions OptionsFor(uint64_t seed) {
  RandomModuleOptions options;
  options.seed = seed;
  if (seed < kOpcodeCount) options.first = static_cast<Opcode>(seed);
  return options;
}

int Run(int argc, char** argv) {
  uint64_t count = 1000, seed = 0, seconds = 0;
  bool print = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--print") {
      print = true;
    } else if (!Flag(argument, "--count=", &count) && !Flag(argument, "--seed=", &seed) &&
               !Flag(argument, "--seconds=", &seconds)) {
      std::fprintf(stderr, "usage: random_modules [--count=N] [--seed=N] [--print] [--seconds=N]\n");
      return 2;
    }
  }
  if (print) {
    std::printf("%s", RandomModule(OptionsFor(seed)).c_str());
    return 0;
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  std::vector<bool> seen(kOpcodeCount, false);
  uint64_t held = 0, failed = 0, next = seed;
  for (; next < seed + count; ++next) {
    if (seconds != 0 && Clock::now() - begin > std::chrono::seconds(seconds)) break;
    const RoundTripResult result = CheckRoundTrips(RandomModule(OptionsFor(next)), {});
    for (size_t k = 0; k < result.opcodes.size(); ++k) seen[k] = seen[k] || result.opcodes[k];
    if (result.failure.empty()) {
      ++held;
      continue;
    }
    if (++failed <= 20) std::printf("--seed=%llu: %s\n", static_cast<unsigned long long>(next), result.failure.c_str());
  }
  uint64_t opcodes = 0;
  for (size_t k = 0; k < kOpcodeCount; ++k) {
    opcodes += seen[k] ? 1 : 0;
    if (seed == 0 && count >= kOpcodeCount && !seen[k]) {
      const std::string_view text = ToString(static_cast<Opcode>(k));
      std::printf("no module with %.*s ran\n", static_cast<int>(text.size()), text.data());
      ++failed;
    }
  }
  std::printf("%llu of %llu modules held, with %llu of %zu opcodes\n", static_cast<unsigned long long>(held),
              static_cast<unsigned long long>(next - seed), static_cast<unsigned long long>(opcodes), kOpcodeCount);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hlokit::random_test

int main(int argc, char** argv) { return hlokit::random_test::Run(argc, argv); }
