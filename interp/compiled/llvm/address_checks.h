// SPDX-License-Identifier: Apache-2.0
// Checks of addresses in generated code, in builds with the address sanitizer: the code is instrumented as the compiler
// instruments that of the build.
#ifndef HLOKIT_INTERP_COMPILED_LLVM_ADDRESS_CHECKS_H_
#define HLOKIT_INTERP_COMPILED_LLVM_ADDRESS_CHECKS_H_

#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace hlokit::interp::compiled {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kChecksAddresses = true;
#else
inline constexpr bool kChecksAddresses = false;
#endif

// Adds the checks. The code then has addresses of this process, of functions that report. Returns an error if the
// process lacks one. Requires: kChecksAddresses.
llvm::Error AddAddressChecks(llvm::TargetMachine* machine, llvm::Module* module);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_LLVM_ADDRESS_CHECKS_H_
