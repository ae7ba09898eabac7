// SPDX-License-Identifier: Apache-2.0
// Profiling flags of tools that run programs: host profiles, with the programs on a simulated TPU.
#ifndef HLOKIT_TOOLS_CLI_FLAGS_PROFILE_FLAGS_H_
#define HLOKIT_TOOLS_CLI_FLAGS_PROFILE_FLAGS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/observe/profiler.h"
#include "runtime/observe/profiler_server.h"
#include "tools/cli/cli.h"
#include "tools/cli/flags/variation_flags.h"

namespace CLI {
class App;
}

namespace hlokit::cli {

struct ProfileFlags {
  std::string profile;                 // log directory; "": none
  std::string report;                  // directory of the report page; "": none
  std::string device = "v4";           // simulated device
  int64_t replicas = 0;                // 0: as in the programs
  std::string host_times = "modeled";  // or measured
  VariationFlags variation;
  tpu::PerformanceVariation performance;  // set by Check
  size_t events = 200000;
  int port = -1;                   // of the profiler's server; negative: none
  std::string command;             // the command line, for the page
  std::string title;               // of the page
  std::vector<std::string> names;  // of all flags, for the page

  void AddTo(CLI::App* app);
  // Reads the flags. Returns false after an error, which is printed.
  bool Check(DiagnosticReporter* diagnostics);
  bool wanted() const { return !profile.empty() || !report.empty(); }
};

// Serves profiles on the port until the result is destroyed. Returns null after an error, which is printed.
std::unique_ptr<runtime::ProfilerServer> ServeProfiles(const ProfileFlags& flags, DiagnosticReporter* diagnostics);

// Starts recording. Returns false after an error, which is printed.
bool StartProfile(DiagnosticReporter* diagnostics);
// Ends recording, simulates the programs and writes the requested outputs. Prints errors.
void FinishProfile(const ProfileFlags& flags, DiagnosticReporter* diagnostics);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_FLAGS_PROFILE_FLAGS_H_
