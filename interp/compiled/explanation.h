// SPDX-License-Identifier: Apache-2.0
// What became of each instruction of a program in the fast engine, as a table.
#ifndef HLOKIT_INTERP_COMPILED_EXPLANATION_H_
#define HLOKIT_INTERP_COMPILED_EXPLANATION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "interp/compiled/compiled_kernels.h"
#include "interp/interface/limits.h"
#include "ir/graph/module.h"

namespace hlokit::interp::compiled {

// Returns a line for each instruction that computes something, in the order in which they were prepared: its name, its
// opcode, what runs it, and why if that is a kernel of the exact engine. Three lines of numbers precede them:
// instructions by kind; loops, how many were compiled and in which time, and how many of them were known; the memory
// that is planned, and the bytes that are live at one time.
std::string Explain(const Module& module, const CompiledKernels& kernels, const PlannedMemory& memory);

// Returns the instructions of each loop, by the id of the last one.
std::map<uint32_t, std::vector<InstructionId>> LoopMembers(const CompiledKernels& kernels);

// Returns what runs each instruction, by id, "loop of 3" for the last one of a loop; empty if it has no thunk.
std::vector<std::string> KernelTexts(const Module& module, const CompiledKernels& kernels);

// The stages of a loop: its instructions, its program, LLVM code as written and after LLVM's passes, and assembly. The
// last three are empty without LLVM.
struct LoopTexts {
  std::string hlo;
  std::string program;
  std::string ir;
  std::string optimized_ir;
  std::string assembly;
};
LoopTexts TextsOf(const Module& module, const CompiledKernels& kernels, const CompiledLoop& loop);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_EXPLANATION_H_
