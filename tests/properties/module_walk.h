// SPDX-License-Identifier: Apache-2.0
// The modules of a test of engines: files among and below paths, then random ones, as far as the time allows.
#ifndef HLOKIT_TESTS_PROPERTIES_MODULE_WALK_H_
#define HLOKIT_TESTS_PROPERTIES_MODULE_WALK_H_

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interp/interface/mixed_precision.h"
#include "ir/core/str_cat.h"
#include "ir/ops/opcode.h"
#include "tests/properties/hlo_files.h"
#include "tests/random/random_module.h"

namespace hlokit {

// Returns the contents of a file; nullopt if it cannot be read.
inline std::optional<std::string> TextOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct WalkedModule {
  std::string name;  // the path, or the flags that generate the module
  std::string text;
  bool is_file = false;
  interp::MixedPrecisionMode mixed_precision = interp::MixedPrecisionMode::kConvert;
};

class ModuleWalk {
 public:
  // Flags --random=N, --seed=N and --seconds=N. Returns false for others.
  bool ParseFlag(std::string_view argument) {
    return Number(argument, "--random=", &random_) || Number(argument, "--seed=", &seed_) ||
           Number(argument, "--seconds=", &seconds_);
  }
  // Reads the value of a flag "--name=".
  static bool Number(std::string_view argument, std::string_view name, uint64_t* value) {
    if (!argument.starts_with(name)) return false;
    *value = std::strtoull(std::string(argument.substr(name.size())).c_str(), nullptr, 10);
    return true;
  }

  // Calls `visit` with each module. `finish`, if not null, is called after those of a path, and after the random ones.
  void Run(const std::vector<std::string>& paths, const std::function<void(WalkedModule)>& visit,
           const std::function<void(const std::string& path)>& finish = nullptr) const {
    for (const std::string& path : paths) {
      for (const std::string& file : HloFiles({path})) {
        if (OutOfTime()) break;
        visit({file, TextOfFile(file).value_or(""), true, interp::MixedPrecisionMode::kReinterpret});
      }
      if (finish) finish(path);
    }
    for (uint64_t seed = seed_; seed < seed_ + random_ && !OutOfTime(); ++seed) {
      random_test::RandomModuleOptions options;
      options.seed = seed;
      if (seed < kOpcodeCount) options.first = static_cast<Opcode>(seed);
      visit({StrCat("--random=1 --seed=", seed), random_test::RandomModule(options), false,
             interp::MixedPrecisionMode::kConvert});
    }
    if (finish && random_ != 0) finish("random modules");
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool OutOfTime() const { return seconds_ != 0 && Clock::now() - begin_ > std::chrono::seconds(seconds_); }

  const Clock::time_point begin_ = Clock::now();
  uint64_t random_ = 0, seed_ = 0, seconds_ = 0;
};

}  // namespace hlokit

#endif  // HLOKIT_TESTS_PROPERTIES_MODULE_WALK_H_
