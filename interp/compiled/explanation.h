// SPDX-License-Identifier: Apache-2.0
// What became of each instruction of a program in the fast engine, as a table.
#ifndef HLOKIT_INTERP_COMPILED_EXPLANATION_H_
#define HLOKIT_INTERP_COMPILED_EXPLANATION_H_

#include <string>

#include "interp/compiled/compiled_kernels.h"
#include "ir/graph/module.h"

namespace hlokit::interp::compiled {

// Returns a line for each instruction that computes something, in the order in which they were prepared: its name, its
// opcode, what runs it, and why if that is a kernel of the exact engine. A line of numbers precedes them.
std::string Explain(const Module& module, const CompiledKernels& kernels);

// The stages of a loop: its program, LLVM code and assembly. The last two are empty without LLVM.
struct LoopTexts {
  std::string program;
  std::string ir;
  std::string assembly;
};
LoopTexts TextsOf(const CompiledLoop& loop);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_EXPLANATION_H_
