// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/value_kinds.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "ir/core/str_cat.h"
#include "simulator/timing/device_selection.h"
#include "simulator/timing/host.h"

namespace hlokit::run {
namespace {

// Completes "ulp:2,rel:1e-5".
void CompleteTolerance(std::string_view typed, cli::Completion* out) {
  cli::CompleteList(typed, {"exact", "ulp:", "rel:", "abs:"}, out);
}

void CompleteParameter(std::string_view, cli::Completion* out) {
  cli::CompleteNames(tpu::ScalableParameters(), "=", out);
  out->open = true;
}

// Completes "trace=12ms,compile=3s", or the file of a profile.
void CompleteHost(std::string_view typed, cli::Completion* out) {
  constexpr std::string_view kProfile = "profile:";
  if (typed.starts_with(kProfile)) {
    out->paths = cli::Completion::Paths::kFiles;
    out->path_begin = kProfile.size();
    return;
  }
  out->open = true;
  if (typed.find(',') == std::string_view::npos) {
    out->candidates.push_back({std::string(kProfile), "as recorded in a profile"});
  }
  const size_t begin = typed.rfind(',') == std::string_view::npos ? 0 : typed.rfind(',') + 1;
  for (const std::string_view key : tpu::HostModelKeys()) {
    out->candidates.push_back({StrCat(typed.substr(0, begin), key, "="), ""});
  }
}

// Completes "device=v5e,v6e:2x2".
void CompleteSweep(std::string_view typed, cli::Completion* out) {
  out->open = true;
  const size_t equal = typed.find('=');
  if (equal == std::string_view::npos) {
    cli::CompleteNames({"device", "chips", "dtype", "batch", "seq"}, "=", out);
    return cli::CompleteNames(tpu::ScalableParameters(), "=", out);
  }
  cli::Completion values;
  const std::string_view what = typed.substr(0, equal);
  if (what == "device") cli::CompleteList(typed.substr(equal + 1), tpu::BuiltinDeviceDescriptions(), &values);
  if (what == "dtype") cli::CompleteList(typed.substr(equal + 1), {"f32", "bf16", "f16", "f64"}, &values);
  for (const cli::Candidate& value : values.candidates) {
    out->candidates.push_back({StrCat(what, "=", value.text), ""});
  }
}

void CompleteStraggler(std::string_view, cli::Completion* out) {
  out->candidates.push_back({"any:", "draws a device"});
  out->open = true;
}

}  // namespace

std::vector<cli::ValueKind> ValueKinds() {
  return {{"TOLERANCE", CompleteTolerance},
          {"PARAMETER=FACTOR", CompleteParameter},
          {"HOST", CompleteHost},
          {"SWEEP", CompleteSweep},
          {"STRAGGLER", CompleteStraggler}};
}

}  // namespace hlokit::run
