// SPDX-License-Identifier: Apache-2.0
// hlo-run on a simulated TPU: the flag --device and related ones.
#ifndef HLOKIT_TOOLS_HLO_RUN_SIMULATION_H_
#define HLOKIT_TOOLS_HLO_RUN_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "interp/processes/mpi_session.h"
#include "ir/graph/module.h"
#include "tools/cli/cli.h"
#include "tools/cli/flags/remark_flags.h"
#include "tools/cli/flags/variation_flags.h"

namespace CLI {
class App;
}

namespace hlokit::run {

struct SimulationFlags {
  std::string device;              // "" : no simulation
  std::vector<std::string> scale;  // PARAMETER=FACTOR
  bool timing_only = false;
  bool json = false;
  bool list_devices = false;
  std::string print_device;
  std::string timeline;  // trace file; "": none
  std::string xplane;    // profile directory; "": none
  size_t timeline_events = 200000;
  int64_t timeline_devices = 8;
  cli::VariationFlags variation;
  std::string sweep;  // WHAT=VALUE,VALUE,...
  std::string report = "-";
  std::string page;                // directory of the report page; "": none
  std::string host;                // host model, KEY=VALUE,...
  std::string command;             // the command line, for the page
  std::vector<std::string> names;  // of all flags, for the page
  std::string pipeline = "tpu";    // runs first over modules without a schedule
  std::string print_hlo;           // passes after which the module is printed; "": none
  int64_t default_trip_count = 1;
  double dispatch_us = -1;
  size_t top = 20;
  bool memory = false;
  bool advise = false;
  cli::RemarkFlags remarks;

  // Group of these flags in --help. All but --list-devices and --print-device require a device.
  static constexpr std::string_view kGroup = "Simulated TPU";
  void AddTo(CLI::App* app);
};

// Prints devices for --list-devices or --print-device. Returns the exit code.
int ShowDevices(const SimulationFlags& flags, cli::DiagnosticReporter* diagnostics);
// Writes the table of --sweep, in the first process of a session; see sweep.h. Prints errors.
void SweepModules(const SimulationFlags& flags,
                  const std::function<std::unique_ptr<Module>(const std::string&)>& programs, bool family,
                  cli::DiagnosticReporter* diagnostics, interp::MpiSession* session);
// Simulates and writes the report. Prints errors, and warnings at places of `source`, from which the module was read.
void SimulateModule(const SimulationFlags& flags, const Module& module, const SourceBuffer& source,
                    cli::DiagnosticReporter* diagnostics);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_SIMULATION_H_
