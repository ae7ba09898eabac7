// SPDX-License-Identifier: Apache-2.0
// Arguments of the devices of a run, those of each in turn.
#ifndef HLOKIT_CHECK_ARGUMENTS_DEVICE_ARGUMENTS_H_
#define HLOKIT_CHECK_ARGUMENTS_DEVICE_ARGUMENTS_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "interp/interface/engine.h"
#include "interp/interface/evaluator_options.h"
#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

// Generates different arguments for each device from the seed of the options, subject to their limits on memory and
// time and to their cancellation.
absl::StatusOr<std::vector<Literal>> MakeDeviceArguments(const Module& module, const EvaluatorOptions& options,
                                                         const DeviceRange& devices);

// Reads arguments from text, those of all devices or those of one, which each of them gets. Returns nullopt after
// errors, which are in the sink.
std::optional<std::vector<Literal>> ReadDeviceArguments(const SourceBuffer& source, const std::vector<Shape>& shapes,
                                                        const DeviceRange& devices, Context* context,
                                                        DiagnosticSink* sink);

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_ARGUMENTS_DEVICE_ARGUMENTS_H_
