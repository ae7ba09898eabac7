// The passes that compile a program for a machine.
#ifndef HLOKIT_INTERP_TPU_COMPILE_H_
#define HLOKIT_INTERP_TPU_COMPILE_H_

#include <string>
#include <string_view>

#include "interp/tpu/machine.h"

namespace hlokit::tpu {

// A pipeline's text for this machine: `tpu` alone takes its figures from it, anything else stays as it is.
std::string PipelineFor(const Machine& machine, std::string_view pipeline);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_COMPILE_H_
