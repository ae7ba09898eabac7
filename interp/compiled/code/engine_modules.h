// SPDX-License-Identifier: Apache-2.0
// The modules of the compiled engine: shared libraries that are loaded when a program first needs them, so that others
// do not pay for libLLVM and oneDNN. They lie in ../lib/hlokit beside the directory of the program, or in a wheel above
// that directory; or beside the object that this code is part of, in ../lib/hlokit beside its directory, or, of an
// extension module of Python that is installed in lib/python3/dist-packages, in lib/hlokit. A module that users can
// change who cannot change the program is not loaded. One of another build counts as missing: interfaces differ.
#ifndef HLOKIT_INTERP_COMPILED_CODE_ENGINE_MODULES_H_
#define HLOKIT_INTERP_COMPILED_CODE_ENGINE_MODULES_H_

#include <filesystem>

#include "absl/status/statusor.h"
#include "interp/compiled/code/code_generator.h"
#include "interp/compiled/code/library_interface.h"

namespace hlokit::interp::compiled {

// An error if the module is not there, cannot be loaded or is of another build. Thread-safe.
const absl::StatusOr<Library*>& ProductLibrary();
const absl::StatusOr<CodeGenerator*>& Generator();

// Returns true if there is a file of one of them, or of the code generator's. The latter is asked once.
bool HasEngineModules();
bool HasGeneratorModule();

// Returns the address of `symbol` in the module `file`; an error if it cannot be loaded or is of another build.
absl::StatusOr<void*> LoadModule(const std::filesystem::path& file, const char* symbol);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_CODE_ENGINE_MODULES_H_
