// SPDX-License-Identifier: Apache-2.0
#include "check/arguments/device_arguments.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

#include "check/arguments/argument_generator.h"
#include "io/arrays/arguments.h"

namespace hlokit::interp {

absl::StatusOr<std::vector<Literal>> MakeDeviceArguments(const Module& module, const EvaluatorOptions& options,
                                                         const DeviceRange& devices) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  GeneratorOptions generator;
  generator.num_threads = options.num_threads;
  generator.max_bytes = options.limits.max_bytes / std::max<int64_t>(devices.count, 1);
  generator.poll = [&] {
    if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed)) {
      return absl::CancelledError("interrupted while arguments were made");
    }
    if (!options.limits.IsOutOfTime(start)) return absl::OkStatus();
    return absl::DeadlineExceededError(options.limits.OutOfTimeMessage("making the arguments"));
  };
  std::vector<Literal> all;
  for (int64_t d = devices.first; d < devices.first + devices.count; ++d) {
    absl::StatusOr<std::vector<Literal>> values =
        MakeFakeArguments(module, options.seed + (static_cast<uint64_t>(d) << 48), generator);
    if (!values.ok()) return values.status();
    for (Literal& value : *values) all.push_back(std::move(value));
  }
  return all;
}

std::optional<std::vector<Literal>> ReadDeviceArguments(const SourceBuffer& source, const std::vector<Shape>& shapes,
                                                        const DeviceRange& devices, Context* context,
                                                        DiagnosticSink* sink) {
  if (devices.all == 1) return ReadArguments(source, shapes, context, sink, "argument");
  DiagnosticSink none;
  const std::optional<std::vector<Literal>> one = ReadArguments(source, shapes, context, &none, "argument");
  if (one) {
    std::vector<Literal> all;
    for (int64_t d = 0; d < devices.count; ++d) all.insert(all.end(), one->begin(), one->end());
    return all;
  }
  std::vector<Shape> of_all;
  for (int64_t d = 0; d < devices.all; ++d) of_all.insert(of_all.end(), shapes.begin(), shapes.end());
  std::optional<std::vector<Literal>> all = ReadArguments(source, of_all, context, sink, "argument");
  if (!all) return all;
  const auto begin = all->begin() + devices.first * static_cast<int64_t>(shapes.size());
  return std::vector<Literal>(begin, begin + devices.count * static_cast<int64_t>(shapes.size()));
}

}  // namespace hlokit::interp
