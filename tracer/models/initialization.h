// SPDX-License-Identifier: Apache-2.0
// Random initial values of parameters, with the distributions that models were published with.
#ifndef HLOKIT_TRACER_MODELS_INITIALIZATION_H_
#define HLOKIT_TRACER_MODELS_INITIALIZATION_H_

#include <cstdint>

#include "tracer/models/model.h"
#include "tracer/nn/parameter_registry.h"

namespace hlokit::lazy::models {

// Returns the initialization of the model: the distributions of torch's layers, torchvision, Hugging Face transformers
// or the paper, not their random numbers. Equal seeds give equal values. Requires: `config` is complete.
nn::Initializer PublishedInitializer(const ModelConfig& config, uint64_t seed);

}  // namespace hlokit::lazy::models

#endif  // HLOKIT_TRACER_MODELS_INITIALIZATION_H_
