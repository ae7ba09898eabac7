// SPDX-License-Identifier: Apache-2.0
#include "interp/processes/mpi_session.h"

#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>

#include "io/stores/private_directory.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

// Ends the process if MPI has not started in time: until all processes have met, none learns that another is missing.
class StartLimit {
 public:
  explicit StartLimit(const std::string& tool)
      : thread_([this, tool] {
          constexpr std::chrono::seconds kSilent(15), kLimit(120);
          std::unique_lock<std::mutex> lock(mutex_);
          if (changed_.wait_for(lock, kSilent, [this] { return started_; })) return;
          // One that has ended before it called MPI_Init is not missed by MPI itself.
          std::fprintf(stderr, "%s: note: --mpi: waiting for all processes to start, %d s at most\n", tool.c_str(),
                       static_cast<int>(kLimit.count()));
          if (changed_.wait_for(lock, kLimit - kSilent, [this] { return started_; })) return;
          std::fprintf(stderr, "%s: error: --mpi: the processes have not met within %d s\n", tool.c_str(),
                       static_cast<int>(kLimit.count()));
          _exit(3);
        }) {}
  StartLimit(const StartLimit&) = delete;
  StartLimit& operator=(const StartLimit&) = delete;
  ~StartLimit() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      started_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool started_ = false;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MpiSession>> MpiSession::Start(const MpiSessionOptions& options) {
  std::error_code ignored;
  const std::filesystem::path tool = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::filesystem::path module = tool.parent_path().parent_path() / "lib/hlokit/libhlokit_mpi.so";
  if (!std::filesystem::exists(module, ignored)) {
    return absl::UnimplementedError(
        "this build has no MPI: install an MPI library (Debian: libopenmpi-dev) and build again");
  }
  if (absl::Status status = CheckModuleOf(tool.string(), module.string()); !status.ok()) return status;
  // Open MPI loads modules of its own, which need its symbols.
  void* const library = dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
  const auto open =
      library == nullptr ? nullptr : reinterpret_cast<OpenTransportFunction>(dlsym(library, kOpenTransportName));
  if (open == nullptr) return absl::UnavailableError(StrCat("cannot load MPI: ", dlerror()));
  const StartLimit limit(options.tool);
  char error[256] = "it has been started already";
  Transport* const transport = open(error, sizeof(error));
  if (transport == nullptr) return absl::UnavailableError(StrCat("cannot start MPI: ", error));
  absl::StatusOr<std::unique_ptr<ControlChannel>> channel =
      ControlChannel::Open(transport, options.tool, options.timeout_seconds);
  if (!channel.ok()) return channel.status();
  return std::unique_ptr<MpiSession>(new MpiSession(transport, *std::move(channel), options));
}

int MpiSession::End(int exit_code) {
  if (exit_code != 0) channel_->Fail(exit_code, "");
  if (const absl::Status sent = Flush(); !sent.ok()) {
    channel_->Fail(3, StrCat(tool_, ": error: --mpi: ", std::string(sent.message()), "\n"));
  }
  channel_->Finish();
  channel_->BeginCall("MPI_Finalize");
  transport().Finalize();
  channel_.reset();
  return 0;
}

}  // namespace hlokit::interp
