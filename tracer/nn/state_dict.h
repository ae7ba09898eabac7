// SPDX-License-Identifier: Apache-2.0
// Values of a model, and of its optimizer, on the host: fetched, loaded, kept in files.
#ifndef HLOKIT_TRACER_NN_STATE_DICT_H_
#define HLOKIT_TRACER_NN_STATE_DICT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tracer/nn/parameter_registry.h"
#include "tracer/nn/safetensors.h"

namespace hlokit::lazy::nn {

// Computes the tensors, all of one device, in one program that reuses no buffer, and copies them to the host. What else
// is pending stays so.
absl::StatusOr<std::vector<NamedValue>> FetchState(absl::Span<const NamedTensor> tensors);

// Gives tensors the values of their names, converted to their types. With `strict`, names that are missing on either
// side are an error, as sizes that differ always are; nothing is loaded then. Errors are worded as torch's.
absl::Status LoadState(absl::Span<const NamedTensor> tensors, absl::Span<const NamedValue> values, bool strict = true);

// As xm.save: every device brings its tensors to the host, device 0 writes the file, whole or not at all.
absl::Status SaveState(const std::string& path, absl::Span<const NamedTensor> tensors, bool master_only = true);
absl::Status LoadState(const std::string& path, absl::Span<const NamedTensor> tensors, bool strict = true);

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_STATE_DICT_H_
