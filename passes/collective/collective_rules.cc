// SPDX-License-Identifier: Apache-2.0
#include "passes/collective/collective_rules.h"

namespace hlokit {

void EraseUnusedCollective(PatternRewriter& rewriter, Instruction user, Instruction collective) {
  Module& module = rewriter.module();
  for (Instruction i : {user, collective}) {
    if (i.record().parent.valid() && !i.has_users() && !i.is_root() && !i.has_control_edges()) module.Erase(i.id());
  }
}

}  // namespace hlokit
