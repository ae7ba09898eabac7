// SPDX-License-Identifier: Apache-2.0
#include "interp/interface/engine.h"

#include "ir/core/str_cat.h"

namespace hlokit::interp {

std::optional<std::vector<Literal>> Engine::Run(absl::Span<const Literal> arguments, DiagnosticSink* sink) {
  std::vector<const Literal*> pointers;
  pointers.reserve(arguments.size());
  for (const Literal& argument : arguments) pointers.push_back(&argument);
  return RunPointers(pointers, sink);
}

bool Engine::CheckProgram(const Module& module, const EvaluatorOptions& options, DiagnosticSink* sink) {
  constexpr int64_t kMaxDevices = EvaluatorOptions::kMaxDevices;
  const int64_t replicas = options.num_replicas, partitions = options.num_partitions;
  if (replicas < 1 || partitions < 1 || replicas > kMaxDevices || partitions > kMaxDevices / replicas) {
    sink->Error(
        DiagnosticKind::kUnsupported, {},
        StrCat("cannot run ", replicas, " replicas of ", partitions, " partitions; up to ", kMaxDevices, " devices"));
    return false;
  }
  if (!module.entry().valid()) {
    sink->Error(DiagnosticKind::kUnsupported, {}, "the module has no entry computation");
    return false;
  }
  return true;
}

bool Engine::CheckArgumentCount(absl::Span<const Literal* const> arguments, DiagnosticSink* sink) const {
  const size_t each = argument_shapes().size(), count = static_cast<size_t>(devices().count);
  if (arguments.size() == each * count) return true;
  sink->Error(
      DiagnosticKind::kEvaluation, {},
      StrCat("expected ", each, " arguments (leaves) for each of ", count, " devices, found ", arguments.size()));
  return false;
}

bool Engine::CheckArguments(absl::Span<const Literal* const> arguments, DiagnosticSink* sink) const {
  if (!CheckArgumentCount(arguments, sink)) return false;
  const std::vector<Shape>& shapes = argument_shapes();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Shape expected = shapes[i % shapes.size()];
    if (SameShape(arguments[i]->shape(), expected, /*ignore_layout=*/true)) continue;
    sink->Error(DiagnosticKind::kEvaluation, {},
                StrCat("argument ", i, " has shape ", ToString(arguments[i]->shape(), false), ", expected ",
                       ToString(expected, false)));
    return false;
  }
  return true;
}

}  // namespace hlokit::interp
