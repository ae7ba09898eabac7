// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/engine.h"

#include <string>
#include <utility>

namespace hlokit::run {

std::unique_ptr<Engine> Engine::Prepare(EngineKind kind, const Module& module, const interp::EvaluatorOptions& options,
                                        DiagnosticSink* sink) {
  auto engine = std::make_unique<Engine>();
  engine->engine_ = interp::Engine::Prepare(kind, module, options, sink);
  return engine->engine_ == nullptr ? nullptr : std::move(engine);
}

void Engine::DivideArrays(interp::ShardedArrays parameters, interp::ShardedArrays result, interp::PaddingFill padding,
                          bool by_device) {
  Division division{std::move(parameters), std::move(result), padding, by_device, {}, {}};
  division.argument_shapes = division.parameters.whole_shapes();
  division.result_shapes = division.result.whole_shapes();
  division_ = std::move(division);
}

std::optional<std::vector<Literal>> Engine::Run(absl::Span<const Literal> arguments, DiagnosticSink* sink) {
  if (!division_) return engine_->Run(arguments, sink);
  std::optional<std::vector<Literal>> parts =
      engine_->Run(division_->parameters.Divide(arguments, division_->padding), sink);
  if (!parts || division_->by_device) return parts;
  absl::StatusOr<std::vector<Literal>> whole = division_->result.Assemble(*parts, "result");
  if (whole.ok()) return *std::move(whole);
  sink->Error(DiagnosticKind::kSharding, {}, std::string(whole.status().message()));
  return std::nullopt;
}

}  // namespace hlokit::run
