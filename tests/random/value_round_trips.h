// SPDX-License-Identifier: Apache-2.0
// Checks that the results of a module do not change when it is printed and parsed, as text and as JSON, and when dead
// and duplicate code is removed.
#ifndef HLOKIT_TESTS_RANDOM_VALUE_ROUND_TRIPS_H_
#define HLOKIT_TESTS_RANDOM_VALUE_ROUND_TRIPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interp/interface/host_io.h"
#include "interp/interface/mixed_precision.h"
#include "ir/graph/module.h"
#include "ir/ops/opcode.h"
#include "ir/types/literal.h"

namespace hlokit::random_test {

// A host that generates the values of each queue from a seed and accepts all outputs.
class AnyHost : public interp::HostIo {
 public:
  absl::Status Receive(std::string_view queue, int64_t device, absl::Span<Literal> leaves) override;
  absl::Status Send(std::string_view, int64_t, absl::Span<const Literal>) override { return absl::OkStatus(); }
};

struct RoundTripOptions {
  std::optional<std::string> arguments;  // as text; generated if absent
  interp::MixedPrecisionMode mixed_precision = interp::MixedPrecisionMode::kConvert;
  bool must_run = true;  // an error of the first run is a failure; otherwise nothing is compared
};

struct RoundTripResult {
  std::string failure;  // empty: all results are equal
  bool ran = false;
  std::vector<bool> opcodes;  // by number: opcodes of the module, if it ran without an error
};

RoundTripResult CheckRoundTrips(std::string_view text, const RoundTripOptions& options);

}  // namespace hlokit::random_test

#endif  // HLOKIT_TESTS_RANDOM_VALUE_ROUND_TRIPS_H_
