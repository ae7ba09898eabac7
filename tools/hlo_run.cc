// SPDX-License-Identifier: Apache-2.0
// hlo-run: runs a module.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "interp/processes/mpi_session.h"
#include "ir/core/str_cat.h"
#include "tools/cli/cli.h"
#include "tools/cli/flags/mpi_flag.h"
#include "tools/hlo_run/flags.h"
#include "tools/hlo_run/run_session.h"
#include "tools/hlo_run/snapshot.h"

namespace hlokit::run {
namespace {

int RunProcess(int argc, char** argv, interp::MpiSession* processes) {
  Flags flags;
  if (std::optional<int> exit_code = ParseFlags(argc, argv, &flags)) return *exit_code;
  if (!flags.dump_snapshot.empty() && !EncodingOfSnapshot(flags.dump_snapshot)) {
    return cli::UsageError("hlo-run", StrCat("--dump-snapshot: ", flags.dump_snapshot,
                                             ": expected a suffix of protocol buffers: .pb, .pbtxt or .pb.json"));
  }
  std::string command = "hlo-run";
  for (int a = 1; a < argc; ++a) StrAppend(&command, " ", argv[a]);
  return RunSession(flags, std::move(command), processes).Run();
}

// The session begins before the flags are parsed: errors in them, too, are printed once.
int Run(int argc, char** argv) {
  interp::MpiSessionOptions options;
  options.tool = "hlo-run";
  if (!cli::WantsMpi(argc, argv, &options.timeout_seconds)) return RunProcess(argc, argv, nullptr);
  absl::StatusOr<std::unique_ptr<interp::MpiSession>> started = interp::MpiSession::Start(options);
  if (!started.ok()) return cli::UsageError("hlo-run", StrCat("--mpi: ", std::string(started.status().message())));
  return (*started)->End(RunProcess(argc, argv, started->get()));
}

}  // namespace
}  // namespace hlokit::run

int main(int argc, char** argv) { return hlokit::cli::Main(hlokit::run::Run, argc, argv); }
