// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/engine.h"

#include <string>
#include <utility>

namespace hlokit::run {

std::unique_ptr<Engine> Engine::Prepare(EngineKind kind, const Module& module, const interp::EvaluatorOptions& options,
                                        DiagnosticSink* sink) {
  auto engine = std::make_unique<Engine>();
  switch (kind) {
    case EngineKind::kExact:
      engine->exact_ = interp::Evaluator::Prepare(module, options, sink);
      break;
    case EngineKind::kReference:
      engine->reference_ = reference::Evaluator::Prepare(module, options, sink);
      break;
  }
  if (engine->exact_ == nullptr && engine->reference_ == nullptr) return nullptr;
  return engine;
}

void Engine::DivideArrays(interp::ShardedArrays parameters, interp::ShardedArrays result, interp::PaddingFill padding,
                          bool by_device) {
  Division division{std::move(parameters), std::move(result), padding, by_device, {}, {}};
  division.argument_shapes = division.parameters.whole_shapes();
  division.result_shapes = division.result.whole_shapes();
  division_ = std::move(division);
}

std::optional<std::vector<Literal>> Engine::Run(absl::Span<const Literal> arguments, DiagnosticSink* sink) {
  if (!division_) return RunOnDevices(arguments, sink);
  std::optional<std::vector<Literal>> parts =
      RunOnDevices(division_->parameters.Divide(arguments, division_->padding), sink);
  if (!parts || division_->by_device) return parts;
  absl::StatusOr<std::vector<Literal>> whole = division_->result.Assemble(*parts, "result");
  if (whole.ok()) return *std::move(whole);
  sink->Error(DiagnosticKind::kSharding, {}, std::string(whole.status().message()));
  return std::nullopt;
}

}  // namespace hlokit::run
