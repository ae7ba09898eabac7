// SPDX-License-Identifier: Apache-2.0
// Flags of tools that simulate devices: performance differences between them.
#ifndef HLOKIT_TOOLS_CLI_FLAGS_VARIATION_FLAGS_H_
#define HLOKIT_TOOLS_CLI_FLAGS_VARIATION_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/timing/simulator.h"
#include "tools/cli/cli.h"

namespace CLI {
class App;
}

namespace hlokit::cli {

struct VariationFlags {
  double jitter = 0;
  std::vector<std::string> stragglers;  // DEVICE:FACTOR or any:FACTOR
  uint64_t seed = 1;

  void AddTo(CLI::App* app, const std::string& group);
  bool given() const { return jitter > 0 || !stragglers.empty(); }
  // Returns false after an error, which is printed.
  bool Read(tpu::PerformanceVariation* variation, DiagnosticReporter* diagnostics) const;
};

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_FLAGS_VARIATION_FLAGS_H_
