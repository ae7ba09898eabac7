// SPDX-License-Identifier: Apache-2.0
#include "ir/verify/elided_constants.h"

#include <cstdint>
#include <string>

#include "ir/core/str_cat.h"
#include "ir/graph/name_range.h"

namespace hlokit {

void WarnOfElidedConstants(const Module& module, DiagnosticSink* sink) {
  constexpr int64_t kMaxNames = 4;
  int64_t count = 0;
  std::string names;
  SourceRange range;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.opcode() != Opcode::kConstant || !i.literal().elided) continue;
      if (count == 0) range = NameRange(i);
      if (++count <= kMaxNames) StrAppend(&names, count == 1 ? "" : ", ", i.name());
    }
  }
  if (count == 0) return;
  if (count > kMaxNames) StrAppend(&names, " and ", count - kMaxNames, " more");
  sink->Warning(DiagnosticKind::kElidedConstant, range,
                StrCat(count == 1 ? "the value of a constant is" : StrCat("the values of ", count, " constants are"),
                       " elided in the text: ", names),
                "to keep them, dump with --xla_dump_large_constants or print with --print=lossless");
}

}  // namespace hlokit
