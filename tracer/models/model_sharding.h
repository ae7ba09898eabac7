// SPDX-License-Identifier: Apache-2.0
// The usual shardings of models over a mesh of devices, as annotations that a partitioner carries out. Axes, by name:
//   data       divides the batch; parameters are replicated
//   fsdp       divides the batch, and parameters too, which are gathered where they are used (ZeRO stage 3)
//   model      divides the layers of transformers: weights of queries, keys, values and the first matrices of
//              feed-forward layers by outputs, those of the second by inputs (Megatron-LM); embeddings by vocabulary
//   sequence   divides the tokens of a sequence
// Dimensions that an axis does not divide equally stay whole, as do parameters without a rule; but outputs, as those of
// a vocabulary, that are at least 64 times as many as the parts are padded.
#ifndef HLOKIT_TRACER_MODELS_MODEL_SHARDING_H_
#define HLOKIT_TRACER_MODELS_MODEL_SHARDING_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "tracer/models/model.h"
#include "tracer/nn/parameter_registry.h"
#include "tracer/ops/sharding.h"

namespace hlokit::lazy::models {

// Parses "data:4,model:2", axes from the slowest to the fastest changing one. Returns an error for other names,
// repeated ones, and more than 2^17 devices.
absl::StatusOr<Mesh> ParseMesh(std::string_view text);
// Returns the names of axes.
std::vector<std::string_view> MeshAxisNames();
int64_t DeviceCount(const Mesh& mesh);

// Returns how a parameter or buffer of a model is divided, by its name and sizes.
PartitionSpec ParameterSpecOf(const Mesh& mesh, std::string_view name, Dims sizes);

// Annotates the parameters and buffers; pending results as well as data.
absl::Status ShardParameters(const Mesh& mesh, const nn::ParameterRegistry& registry);
// Annotates the inputs and labels of a batch.
absl::Status ShardBatch(const Mesh& mesh, const Batch& batch);
// Annotates what stages of the model but the last one return from now on: activations [batch, …], or [batch, tokens, …]
// of a transformer. The mesh must outlive the model.
void ShardActivations(const Mesh& mesh, Model* model);
// Sets the number of partitions of a lowered step, and the sharding of its result, whose elements keep their
// annotations.
void SetPartitions(const Mesh& mesh, Module* module);

}  // namespace hlokit::lazy::models

#endif  // HLOKIT_TRACER_MODELS_MODEL_SHARDING_H_
