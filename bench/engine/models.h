// SPDX-License-Identifier: Apache-2.0
// Training steps of the tracer's models, with the arguments of a first step.
#ifndef HLOKIT_BENCH_ENGINE_MODELS_H_
#define HLOKIT_BENCH_ENGINE_MODELS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/engine/library.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"
#include "tracer/models/model.h"

namespace hlokit::bench {

struct TrainingProgram {
  std::unique_ptr<Module> module;  // after the pipeline of the client
  std::vector<Literal> arguments;
  // By result: the argument whose value it replaces in the next step, or -1.
  std::vector<int64_t> replaced;
};

// Traces forward, backward and an update of plain SGD.
absl::StatusOr<TrainingProgram> TraceTrainingStep(const lazy::models::ModelConfig& config);

// Returns the products of a module.
std::vector<ProductSizes> ProductsOf(const Module& module);

}  // namespace hlokit::bench

#endif  // HLOKIT_BENCH_ENGINE_MODELS_H_
