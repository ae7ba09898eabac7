// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/flags/memory_flag.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "tools/cli/number_flag.h"

namespace hlokit::cli {
namespace {

// Returns the bytes of memory that the machine, or the control group of this process, has.
int64_t MachineMemory() {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  std::ifstream group("/sys/fs/cgroup/memory.max");
  int64_t limit = 0;
  if (group >> limit && limit > 0) bytes = std::min(bytes, limit);  // the text may be "max"
  return bytes > 0 ? bytes : interp::Limits().max_bytes;
}

}  // namespace

CLI::Option* AddMaxBytes(CLI::App* app, interp::Limits* limits) {
  limits->max_bytes = MachineMemory();
  return AddNumber(app, "--max-bytes", &limits->max_bytes,
                   "limit on the bytes of arguments and live values; by default the memory of the machine", 0);
}

}  // namespace hlokit::cli
