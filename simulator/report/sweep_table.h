// SPDX-License-Identifier: Apache-2.0
// Simulations of one program on several targets, or of several programs, as a table and a plot.
#ifndef HLOKIT_SIMULATOR_REPORT_SWEEP_TABLE_H_
#define HLOKIT_SIMULATOR_REPORT_SWEEP_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "simulator/timing/simulator.h"

namespace hlokit::tpu {

// What varies, and its values.
struct SweepValues {
  std::string what;
  std::vector<std::string> values;
};
// Parses "WHAT=VALUE,VALUE,...". Unless `any` name may be given, WHAT is device, chips, dtype, batch, seq or a scalable
// parameter.
absl::StatusOr<SweepValues> ParseSweep(std::string_view text, bool any);

struct SweepRow {
  std::string value;
  double step_us = 0;
  double device_us = 0;
  double busy = 0;
  int64_t peak_bytes = 0;
  double flops = 0;
  int64_t used_devices = 1;
  int64_t devices = 1;
  bool fits = true;
  std::string bound;
};
// Simulates a compiled module.
SweepRow SimulateSweepRow(const std::string& value, const SimulationOptions& options, const Module& module);

// Return a row as bytes for another process of a run, and from them. A row that was cut off stays as it is.
std::string EncodeSweepRow(const SweepRow& row);
void DecodeSweepRow(std::string_view bytes, SweepRow* row);

// Return the rows, as text with a plot of step times, or as JSON.
std::string SweepTable(const std::string& what, const std::vector<SweepRow>& rows);
std::string SweepJson(const std::string& what, const std::vector<SweepRow>& rows);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_REPORT_SWEEP_TABLE_H_
