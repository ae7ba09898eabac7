// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/code/perf_map.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp::compiled {

void AddToPerfMap(const LoopProgram& program, const void* code, size_t bytes) {
  static const bool wanted = [] {
    const char* const value = std::getenv("HLOKIT_PERF_MAP");
    return value != nullptr && std::string_view(value) == "1";
  }();
  if (!wanted) return;
  std::string line = absl::StrFormat("%x %x loop", reinterpret_cast<uintptr_t>(code), bytes);
  constexpr size_t kMaxLine = 160;
  for (const LoopNode& node : program.nodes) {
    if (node.op == LoopOp::kInput || line.size() > kMaxLine) continue;
    StrAppend(&line, " ", NameOf(node.op));
  }
  line += '\n';
  // Each line is one write to its end, so that threads and a child need no lock. A link that another user has put there
  // is not followed.
  const std::string path = StrCat("/tmp/perf-", static_cast<int64_t>(getpid()), ".map");
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return;
  const ssize_t written = write(file, line.data(), line.size());
  static_cast<void>(written);
  close(file);
}

}  // namespace hlokit::interp::compiled
