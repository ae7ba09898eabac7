// SPDX-License-Identifier: Apache-2.0
// Interface to the code generator, a module that is loaded when a kernel must be compiled. The module is compiled with
// the same compiler as the engine, and both include this header.
#ifndef HLOKIT_INTERP_COMPILED_CODE_CODE_GENERATOR_H_
#define HLOKIT_INTERP_COMPILED_CODE_CODE_GENERATOR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "interp/compiled/programs/loop_program.h"
#include "interp/processor/instruction_set.h"

namespace hlokit::interp::compiled {

struct GeneratedCode {
  // Machine code and its constants: position-independent, without relocations. The function begins at `entry`.
  std::vector<std::byte> image;
  int64_t entry = 0;
  // Values of a row that are kept between passes, each in scratch memory of its own.
  int64_t saved_values = 0;
  // The image has addresses of this process: another one cannot run it.
  bool is_of_process = false;
  // For --dump-compiled; empty unless asked for.
  std::string ir;
  std::string optimized_ir;
  std::string assembly;
};

// Why a program has no code. No absl::Status: the module is not linked with Abseil.
struct GenerationError {
  std::string message;
};

class CodeGenerator {
 public:
  virtual ~CodeGenerator() = default;
  // Thread-safe.
  virtual std::variant<GeneratedCode, GenerationError> Generate(const LoopProgram& program, InstructionSet set,
                                                                bool with_text) = 0;
};

// Returns the code generator of the process.
using OpenCodeGeneratorFunction = CodeGenerator* (*)();
inline constexpr char kOpenCodeGeneratorName[] = "HlokitOpenCodeGenerator";

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_CODE_CODE_GENERATOR_H_
