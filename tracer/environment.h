// Options from the environment, under PyTorch/XLA's names.
#ifndef HLOKIT_TRACER_ENVIRONMENT_H_
#define HLOKIT_TRACER_ENVIRONMENT_H_

#include "absl/status/status.h"
#include "tracer/tracer.h"

namespace hlokit::lazy {

// Applies XLA_IR_DEBUG, XLA_HLO_DEBUG, XLA_NO_SPECIAL_SCALARS, XLA_ENABLE_PARAM_ALIASING, XLA_COMPILATION_CACHE_SIZE,
// XLA_PERSISTENT_CACHE_PATH, XLA_PERSISTENT_CACHE_READ_ONLY, XLA_SAVE_TENSORS_FILE, XLA_SAVE_TENSORS_FMT and
// CPU_NUM_DEVICES. `environment` is a null-terminated list of NAME=VALUE. A variable that begins like PyTorch/XLA's
// (XLA_, PT_XLA_, PJRT_) and is none that it knows is an error, which names the nearest: there it would be ignored in
// silence. Those that it knows and this tracer does not need are accepted.
absl::Status ApplyEnvironment(const char* const* environment, TracerOptions* options);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_ENVIRONMENT_H_
