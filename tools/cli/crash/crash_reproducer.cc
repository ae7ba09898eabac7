// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/crash/crash_reproducer.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "ir/core/str_cat.h"
#include "passes/instrumentation/printing.h"

namespace hlokit::cli {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS};

// For the signal handler, which may only read memory and call write.
const char* volatile handler_path = nullptr;
const char* volatile handler_text = nullptr;
volatile size_t handler_size = 0;

bool WriteToPath(const char* path, const char* text, size_t size) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return false;
  while (size > 0) {
    const ssize_t written = write(fd, text, size);
    if (written <= 0) break;
    text += written;
    size -= static_cast<size_t>(written);
  }
  return close(fd) == 0 && size == 0;
}

void OnCrash(int signal) {
  if (handler_path != nullptr && handler_size != 0) WriteToPath(handler_path, handler_text, handler_size);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

CrashReproducer::CrashReproducer(std::string path) : path_(std::move(path)) {
  handler_path = path_.c_str();
  for (int signal : kSignals) std::signal(signal, OnCrash);
}

CrashReproducer::~CrashReproducer() {
  for (int signal : kSignals) std::signal(signal, SIG_DFL);
  handler_path = nullptr;
  handler_size = 0;
}

absl::Status CrashReproducer::RunBeforePass(const PassRun& run, const Module& module) {
  handler_size = 0;
  text_ = StrCat("// hlo-opt --passes='", run.info.name, run.pass.options().ToString(), "' ", path_, "\n",
                 PrintMidPipeline(module, PrintOptions::Lossless()));
  handler_text = text_.data();
  handler_size = text_.size();
  return absl::OkStatus();
}

absl::Status CrashReproducer::Write() const {
  if (text_.empty() || WriteToPath(path_.c_str(), text_.data(), text_.size())) return absl::OkStatus();
  return absl::UnavailableError(StrCat(path_, ": ", std::string_view(std::strerror(errno))));
}

}  // namespace hlokit::cli
