// SPDX-License-Identifier: Apache-2.0
// Declares classes of the exact engine that several of its headers refer to.
#ifndef HLOKIT_INTERP_EXACT_PROGRAM_EXACT_FWD_H_
#define HLOKIT_INTERP_EXACT_PROGRAM_EXACT_FWD_H_

namespace hlokit::interp {

class CompiledComputationBuilder;
class DeviceScheduler;
class KernelProvider;
class ProgramBuilder;
class RunContext;
class ScalarFunction;
class SmallLoop;

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_PROGRAM_EXACT_FWD_H_
