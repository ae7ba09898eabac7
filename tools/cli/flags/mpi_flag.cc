// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/flags/mpi_flag.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"

namespace hlokit::cli {

bool WantsMpi(int argc, char** argv, double* timeout_seconds) {
  constexpr std::string_view kTimeout = "--mpi-timeout";
  bool wants = false;
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    const size_t end = std::min(flag.find('='), flag.size());
    std::replace(flag.begin(), flag.begin() + static_cast<int64_t>(end), '_', '-');
    wants = wants || flag == "--mpi";
    if (flag.substr(0, end) != kTimeout) continue;
    const std::string value = end < flag.size() ? flag.substr(end + 1) : i + 1 < argc ? argv[i + 1] : "";
    double seconds = 0;
    if (absl::SimpleAtod(value, &seconds) && seconds > 0) *timeout_seconds = seconds;
  }
  return wants;
}

}  // namespace hlokit::cli
