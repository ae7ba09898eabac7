// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/flags/variation_flags.h"

#include <CLI/CLI.hpp>
#include <string>

#include "simulator/timing/device_selection.h"
#include "tools/cli/number_flag.h"

namespace hlokit::cli {

void VariationFlags::AddTo(CLI::App* app, const std::string& group) {
  app->add_option("--straggler", stragglers,
                  "DEVICE:FACTOR: slow this device down by the factor; any:FACTOR: a random device; may be repeated")
      ->type_name("STRAGGLER")
      ->group(group);
  AddNumber(app, "--jitter", &jitter,
            "relative standard deviation of the time of each kernel on each device: 0.05 is 5 %", 0, 1)
      ->capture_default_str()
      ->group(group);
  AddNumber(app, "--variation-seed", &seed, "seed of --jitter and --straggler=any")
      ->capture_default_str()
      ->group(group);
}

bool VariationFlags::Read(tpu::PerformanceVariation* variation, DiagnosticReporter* diagnostics) const {
  variation->jitter = jitter;
  variation->seed = seed;
  for (const std::string& straggler : stragglers) {
    const absl::StatusOr<tpu::Straggler> parsed = tpu::ParseStraggler(straggler);
    if (!parsed.ok()) {
      diagnostics->ShowError("--straggler", std::string(parsed.status().message()), kUsage);
      return false;
    }
    variation->stragglers.push_back(*parsed);
  }
  return true;
}

}  // namespace hlokit::cli
