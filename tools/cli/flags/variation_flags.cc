// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/flags/variation_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <system_error>

#include "ir/core/str_cat.h"
#include "tools/cli/number_flag.h"

namespace hlokit::cli {

namespace {

// Parses "3:1.5" or "any:1.5".
bool ReadStraggler(const std::string& text, tpu::PerformanceVariation* variation, DiagnosticReporter* diagnostics) {
  tpu::Straggler straggler;
  const size_t colon = std::min(text.find(':'), text.size());
  const char* end = text.data() + text.size();
  bool good = colon < text.size();
  if (text.substr(0, colon) == "any") {
    straggler.device = -1;
  } else {
    const auto [rest, error] = std::from_chars(text.data(), text.data() + colon, straggler.device);
    good = good && error == std::errc() && rest == text.data() + colon && straggler.device >= 0;
  }
  if (good) {
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, straggler.factor);
    good = error == std::errc() && rest == end && straggler.factor >= 0.01 && straggler.factor <= 1e6;
  }
  if (!good) {
    diagnostics->ShowError("--straggler",
                           StrCat("expected DEVICE:FACTOR or any:FACTOR, as in 3:1.5, found `", text, "`"), kUsage);
    return false;
  }
  variation->stragglers.push_back(straggler);
  return true;
}

}  // namespace

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
    if (!ReadStraggler(straggler, variation, diagnostics)) return false;
  }
  return true;
}

absl::Status CheckStragglers(const tpu::SimulationOptions& options) {
  const int64_t devices = options.topology.Chips() * options.machine.devices_per_chip();
  for (const tpu::Straggler& s : options.variation.stragglers) {
    if (s.device < devices) continue;
    return absl::OutOfRangeError(StrCat("device ", s.device, " is out of range: there are ", devices));
  }
  return absl::OkStatus();
}

}  // namespace hlokit::cli
