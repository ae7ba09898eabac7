// SPDX-License-Identifier: Apache-2.0
// What a module gives stays the same when it is printed and read, as text and as JSON, and when dead and equal code is
// taken out.
#ifndef HLOKIT_TESTS_RANDOM_VALUE_ROUND_TRIPS_H_
#define HLOKIT_TESTS_RANDOM_VALUE_ROUND_TRIPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interp/exact/host_io.h"
#include "interp/exact/mixed_precision.h"
#include "ir/graph/module.h"
#include "ir/ops/opcode.h"
#include "ir/types/literal.h"

namespace hlokit::random_test {

// A host that gives what the seed of a queue makes and takes everything.
class AnyHost : public interp::HostIo {
 public:
  absl::Status Receive(std::string_view queue, int64_t device, absl::Span<Literal> leaves) override;
  absl::Status Send(std::string_view, int64_t, absl::Span<const Literal>) override { return absl::OkStatus(); }
};

struct RoundTripOptions {
  std::optional<std::string> arguments;  // as text; made up without them
  interp::MixedPrecisionMode mixed_precision = interp::MixedPrecisionMode::kConvert;
  bool must_run = true;  // an error of the first run is a failure; else there is nothing to compare
};

struct RoundTripResult {
  std::string failure;  // empty: all the same
  bool ran = false;
  std::vector<bool> opcodes;  // that the module has and that ran without an error, by number
};

RoundTripResult CheckRoundTrips(std::string_view text, const RoundTripOptions& options);

}  // namespace hlokit::random_test

#endif  // HLOKIT_TESTS_RANDOM_VALUE_ROUND_TRIPS_H_
