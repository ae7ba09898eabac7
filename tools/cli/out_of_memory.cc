// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/out_of_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

namespace hlokit::cli {
namespace {

constexpr size_t kReserve = size_t{1} << 20;

char message[128];
size_t message_size = 0;
int end_code = 0;
std::terminate_handler default_terminate = nullptr;

[[noreturn]] void EndOutOfMemory() {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message, message_size);
  _exit(end_code);
}

void OnFailedRequest() {
  void* const reserve = std::malloc(kReserve);
  if (reserve == nullptr) EndOutOfMemory();
  std::free(reserve);
  throw std::bad_alloc();
}

void OnTerminate() {
  if (const std::exception_ptr current = std::current_exception()) {
    try {
      std::rethrow_exception(current);
    } catch (const std::bad_alloc&) {
      EndOutOfMemory();
    } catch (...) {
      // The default handler names it.
    }
  }
  default_terminate();
}

}  // namespace

void InstallOutOfMemoryHandlers(std::string_view tool, int exit_code) {
  end_code = exit_code;
  constexpr std::string_view kText = ": internal error: out of memory\n";
  const size_t name_size = std::min(tool.size(), sizeof(message) - kText.size());
  std::memcpy(message, tool.data(), name_size);
  std::memcpy(message + name_size, kText.data(), kText.size());
  message_size = name_size + kText.size();
  std::set_new_handler(OnFailedRequest);
  default_terminate = std::set_terminate(OnTerminate);
}

}  // namespace hlokit::cli
