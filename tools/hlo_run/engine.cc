// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/engine.h"

#include <string>
#include <utility>

namespace hlokit::run {

std::unique_ptr<Engine> Engine::Prepare(EngineKind kind, const Module& module, const interp::EvaluatorOptions& options,
                                        DiagnosticSink* sink) {
  auto engine = std::make_unique<Engine>();
  engine->engine_ = interp::Engine::Prepare(kind, module, options, sink);
  if (engine->engine_ == nullptr) return nullptr;
  engine->world_ = options.world;
  return engine;
}

void Engine::DivideArrays(interp::ShardedArrays parameters, interp::ShardedArrays result, interp::PaddingFill padding,
                          bool by_device) {
  Division division{std::move(parameters), std::move(result), padding, by_device, {}, {}};
  division.argument_shapes = division.parameters.whole_shapes();
  division.result_shapes = division.result.whole_shapes();
  division_ = std::move(division);
}

DeviceRange Engine::own_devices() const {
  const interp::Evaluator* const exact = engine_->exact();
  if (exact == nullptr) return {num_devices(), 0, num_devices()};
  return {num_devices(), exact->first_device(), exact->num_local_devices()};
}

std::optional<std::vector<Literal>> Engine::RunOnDevices(absl::Span<const Literal> arguments, DiagnosticSink* sink) {
  std::optional<std::vector<Literal>> results = engine_->Run(arguments, sink);
  if (!results || world_ == nullptr || !gathers_) return results;
  const std::vector<Shape>& shapes = engine_->result_shapes();
  const absl::Status gathered = world_->GatherValues(num_devices(), shapes.size(), shapes, &*results);
  if (gathered.ok()) return results;
  sink->Error(DiagnosticKind::kEvaluation, {}, std::string(gathered.message()));
  return std::nullopt;
}

std::optional<std::vector<Literal>> Engine::Run(absl::Span<const Literal> arguments, DiagnosticSink* sink) {
  if (!division_) return RunOnDevices(arguments, sink);
  const DeviceRange own = own_devices();
  std::vector<Literal> divided;
  if (!takes_parts_) {
    divided = division_->parameters.Divide(arguments, division_->padding, own.first, own.count);
    arguments = divided;
  }
  std::optional<std::vector<Literal>> parts = RunOnDevices(arguments, sink);
  if (!parts || division_->by_device || (world_ != nullptr && (world_->rank() != 0 || !gathers_))) return parts;
  absl::StatusOr<std::vector<Literal>> whole = division_->result.Assemble(*parts, "result");
  if (whole.ok()) return *std::move(whole);
  sink->Error(DiagnosticKind::kSharding, {}, std::string(whole.status().message()));
  return std::nullopt;
}

}  // namespace hlokit::run
