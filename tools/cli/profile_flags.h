// SPDX-License-Identifier: Apache-2.0
// Flags of tools that run programs: a profile of what the host does and of the programs on a simulated TPU.
#ifndef HLOKIT_TOOLS_CLI_PROFILE_FLAGS_H_
#define HLOKIT_TOOLS_CLI_PROFILE_FLAGS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "interp/runtime/observe/profiler.h"
#include "interp/runtime/observe/profiler_server.h"
#include "tools/cli/cli.h"

namespace CLI {
class App;
}

namespace hlokit::cli {

struct ProfileFlags {
  std::string profile;        // log folder; "": none
  std::string report;         // folder of the report page; "": none
  std::string device = "v4";  // simulated machine
  int64_t replicas = 0;       // that the programs run on; 0: as they say
  size_t events = 200000;
  int port = -1;        // of the profiler's server; negative: none
  std::string command;  // as the user typed it, for the page

  void AddTo(CLI::App* app);
  bool wanted() const { return !profile.empty() || !report.empty(); }
};

// Serves profiles on the port until the result goes away. Null after an error, which is shown.
std::unique_ptr<runtime::ProfilerServer> ServeProfiles(const ProfileFlags& flags, DiagnosticReporter* diagnostics);

// Begins to record. False after an error, which is shown.
bool StartProfile(DiagnosticReporter* diagnostics);
// Ends recording, runs the programs on the simulated machine and writes what the flags ask for. Errors are shown.
void FinishProfile(const ProfileFlags& flags, DiagnosticReporter* diagnostics);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_PROFILE_FLAGS_H_
