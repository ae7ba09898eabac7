// SPDX-License-Identifier: Apache-2.0
// The instruction set that kernels, generated loops and libraries use.
#ifndef HLOKIT_INTERP_PROCESSOR_INSTRUCTION_SET_H_
#define HLOKIT_INTERP_PROCESSOR_INSTRUCTION_SET_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace hlokit::interp {

// x86-64-v2, -v3 and -v4: vectors of 16, 32 and 64 bytes.
enum class InstructionSet : uint8_t { kSse4, kAvx2, kAvx512 };

constexpr std::string_view ToString(InstructionSet set) {
  return set == InstructionSet::kSse4 ? "sse4" : set == InstructionSet::kAvx2 ? "avx2" : "avx512";
}
constexpr int LanesOf(InstructionSet set) {
  return set == InstructionSet::kSse4 ? 4 : set == InstructionSet::kAvx2 ? 8 : 16;
}

// Returns the best one of this processor, or a lesser one that the environment variable HLOKIT_MAX_ISA (sse4, avx2,
// avx512) names.
InstructionSet HostInstructionSet();

// Returns the function of the best instruction set of this processor, of those compiled for each.
template <typename Function>
Function ForHost(Function sse4, Function avx2, Function avx512) {
  switch (HostInstructionSet()) {
    case InstructionSet::kSse4:
      return sse4;
    case InstructionSet::kAvx2:
      return avx2;
    case InstructionSet::kAvx512:
      return avx512;
  }
  return sse4;
}

// Returns what is wrong with HLOKIT_MAX_ISA; empty if nothing is.
std::string InstructionSetError();

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROCESSOR_INSTRUCTION_SET_H_
