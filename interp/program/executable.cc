// SPDX-License-Identifier: Apache-2.0
#include "interp/program/executable.h"

#include <string>
#include <utility>

#include "interp/processes/world.h"

namespace hlokit::interp {

Executable::Executable(const Module& module, std::unique_ptr<Module> owned, std::unique_ptr<Engine> engine,
                       std::optional<Division> division, World* world)
    : module_(module),
      owned_(std::move(owned)),
      engine_(std::move(engine)),
      division_(std::move(division)),
      world_(world) {}

std::optional<std::vector<Literal>> Executable::RunOnDevices(absl::Span<const Literal> arguments,
                                                             DiagnosticSink* sink) {
  std::optional<std::vector<Literal>> results = engine_->Run(arguments, sink);
  if (!results || world_ == nullptr || !gathers_) return results;
  const std::vector<Shape>& shapes = engine_->result_shapes();
  const absl::Status gathered = world_->GatherValues(engine_->num_devices(), shapes.size(), shapes, &*results);
  if (gathered.ok()) return results;
  sink->Error(DiagnosticKind::kEvaluation, {}, std::string(gathered.message()));
  return std::nullopt;
}

std::optional<std::vector<Literal>> Executable::Run(absl::Span<const Literal> arguments, DiagnosticSink* sink) {
  if (!division_) return RunOnDevices(arguments, sink);
  const DeviceRange own = own_devices();
  std::vector<Literal> divided;
  if (!takes_parts_) {
    divided = division_->arrays.parameters.Divide(arguments, division_->padding, own.first, own.count);
    arguments = divided;
  }
  std::optional<std::vector<Literal>> parts = RunOnDevices(arguments, sink);
  if (!parts || division_->by_device || (world_ != nullptr && (world_->rank() != 0 || !gathers_))) return parts;
  absl::StatusOr<std::vector<Literal>> whole = division_->arrays.result.Assemble(*parts, "result");
  if (whole.ok()) return *std::move(whole);
  sink->Error(DiagnosticKind::kSharding, {}, std::string(whole.status().message()));
  return std::nullopt;
}

}  // namespace hlokit::interp
