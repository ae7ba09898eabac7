// SPDX-License-Identifier: Apache-2.0
#include "interp/processor/instruction_set.h"

#include <cstdlib>

#include "ir/core/str_cat.h"

namespace hlokit::interp {

InstructionSet HostInstructionSet() {
  static const InstructionSet set = [] {
    InstructionSet best = InstructionSet::kSse4;
#if defined(__x86_64__)
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("f16c");
    if (v3) best = InstructionSet::kAvx2;
    if (v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd")) {
      best = InstructionSet::kAvx512;
    }
#endif
    const char* const max = std::getenv("HLOKIT_MAX_ISA");
    for (InstructionSet limit : {InstructionSet::kSse4, InstructionSet::kAvx2}) {
      if (max != nullptr && max == ToString(limit) && limit < best) best = limit;
    }
    return best;
  }();
  return set;
}

std::string InstructionSetError() {
  const char* const max = std::getenv("HLOKIT_MAX_ISA");
  if (max == nullptr || *max == '\0') return "";
  for (InstructionSet set : {InstructionSet::kSse4, InstructionSet::kAvx2, InstructionSet::kAvx512}) {
    if (max == ToString(set)) return "";
  }
  return StrCat("HLOKIT_MAX_ISA: expected sse4, avx2 or avx512, found `", max, "`");
}

}  // namespace hlokit::interp
