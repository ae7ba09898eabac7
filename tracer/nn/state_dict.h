// SPDX-License-Identifier: Apache-2.0
// Values of a model and its optimizer on the host: fetched, loaded, stored in files.
#ifndef HLOKIT_TRACER_NN_STATE_DICT_H_
#define HLOKIT_TRACER_NN_STATE_DICT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "io/arrays/safetensors.h"
#include "tracer/nn/parameter_registry.h"

namespace hlokit::lazy::nn {

// Computes the tensors, all of one device, in one program without donation, and copies them to the host. Other tensors
// stay pending.
absl::StatusOr<std::vector<interp::NamedValue>> FetchState(absl::Span<const NamedTensor> tensors);

// Loads the values by name, converted to the types of the tensors. With `strict`, names missing on either side are
// errors; different sizes always are. Loads nothing after an error. Errors have torch's wording.
absl::Status LoadState(absl::Span<const NamedTensor> tensors, absl::Span<const interp::NamedValue> values,
                       bool strict = true);

// Saves like xm.save: every device copies its tensors to the host, device 0 writes the file, atomically.
absl::Status SaveState(const std::string& path, absl::Span<const NamedTensor> tensors, bool master_only = true);
absl::Status LoadState(const std::string& path, absl::Span<const NamedTensor> tensors, bool strict = true);

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_STATE_DICT_H_
