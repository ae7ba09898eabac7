// SPDX-License-Identifier: Apache-2.0
// Compiled loops, kept in memory by the text of their programs. Memory of code is either writable or executable, never
// both.
#ifndef HLOKIT_INTERP_COMPILED_CODE_CACHE_H_
#define HLOKIT_INTERP_COMPILED_CODE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "interp/compiled/code_generator.h"
#include "interp/compiled/instruction_set.h"
#include "interp/compiled/loop_program.h"

namespace hlokit::interp::compiled {

// Code in executable memory.
class LoadedCode {
 public:
  // Returns null if the system gives no memory.
  static std::unique_ptr<LoadedCode> Load(const GeneratedCode& code);
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  LoopFunction function() const { return function_; }
  int64_t saved_values() const { return saved_values_; }

 private:
  LoadedCode() = default;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
  LoopFunction function_ = nullptr;
  int64_t saved_values_ = 0;
};

struct CodeStatistics {
  int64_t compiled = 0;
  int64_t found = 0;   // in memory
  double seconds = 0;  // of compilation
};

// Returns the code of a program for the processor, compiled if it is not there; null with the reason in `error`.
// Thread-safe. Code is shared by programs of the process and freed with the last of them.
std::shared_ptr<const LoadedCode> CodeOf(const LoopProgram& program, CodeStatistics* statistics, std::string* error);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_CODE_CACHE_H_
