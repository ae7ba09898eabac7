// The passes that compile a program for a machine.
#ifndef HLOKIT_INTERP_TPU_COMPILE_H_
#define HLOKIT_INTERP_TPU_COMPILE_H_

#include <string>
#include <string_view>

#include "interp/tpu/machine.h"
#include "ir/module.h"

namespace hlokit::tpu {

// Among how many devices the work is divided: a module with shardings but without collectives has not been partitioned,
// its shapes are those of all devices.
double PartsOf(const Module& module);

// A pipeline's text for this machine: `tpu` alone takes its figures from it, anything else stays as it is. `parts`: so
// many devices share the program's work and memory (PartsOf).
std::string PipelineFor(const Machine& machine, std::string_view pipeline, double parts = 1);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_COMPILE_H_
