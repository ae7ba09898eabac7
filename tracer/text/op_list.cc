// SPDX-License-Identifier: Apache-2.0
#include "tracer/text/op_list.h"

#include <cstddef>

#include "ir/core/str_cat.h"
#include "tracer/graph/op.h"

namespace hlokit::lazy {

std::string OpList() {
  std::string text;
  for (size_t i = 0; i < kOpCount; ++i) {
    const OpInfo& info = InfoOf(static_cast<Op>(i));
    if ((info.flags & kInternal) == 0) text += StrCat(info.schema_text, "\n");
  }
  return text;
}

}  // namespace hlokit::lazy
