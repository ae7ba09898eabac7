// SPDX-License-Identifier: Apache-2.0
#include "interp/distributed/mpi_session.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "ir/core/str_cat.h"

namespace hlokit::interp {

absl::StatusOr<std::unique_ptr<MpiSession>> MpiSession::Start(const MpiSessionOptions& options) {
  std::error_code ignored;
  const std::filesystem::path tool = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::filesystem::path module = tool.parent_path().parent_path() / "lib/hlokit/libhlokit_mpi.so";
  if (!std::filesystem::exists(module, ignored)) {
    return absl::UnimplementedError(
        "this build has no MPI: install an MPI library (Debian: libopenmpi-dev) and build again");
  }
  // Open MPI loads modules of its own, which need its symbols.
  void* const library = dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
  const auto open =
      library == nullptr ? nullptr : reinterpret_cast<OpenTransportFunction>(dlsym(library, kOpenTransportName));
  if (open == nullptr) return absl::UnavailableError(StrCat("cannot load MPI: ", dlerror()));
  char error[256] = "it has been started already";
  Transport* const transport = open(error, sizeof(error));
  if (transport == nullptr) return absl::UnavailableError(StrCat("cannot start MPI: ", error));
  absl::StatusOr<std::unique_ptr<ControlChannel>> channel =
      ControlChannel::Open(transport, options.tool, options.timeout_seconds);
  if (!channel.ok()) return channel.status();
  return std::unique_ptr<MpiSession>(new MpiSession(transport, *std::move(channel)));
}

int MpiSession::End(int exit_code) {
  if (exit_code != 0) channel_->Fail(exit_code, "");
  channel_->Finish();
  channel_.reset();
  transport().Finalize();
  return 0;
}

}  // namespace hlokit::interp
