// SPDX-License-Identifier: Apache-2.0
// The modules of the compiled engine: shared libraries that are loaded when a program first needs them, so that others
// do not pay for libLLVM and oneDNN. They lie in lib/hlokit beside the folder of the program, or of the extension
// module.
#ifndef HLOKIT_INTERP_COMPILED_ENGINE_MODULES_H_
#define HLOKIT_INTERP_COMPILED_ENGINE_MODULES_H_

#include "interp/compiled/code_generator.h"
#include "interp/compiled/library_interface.h"

namespace hlokit::interp::compiled {

// Return null if the module is not there or cannot be loaded. Thread-safe.
Library* ProductLibrary();
CodeGenerator* Generator();

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_ENGINE_MODULES_H_
