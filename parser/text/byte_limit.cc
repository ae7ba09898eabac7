// SPDX-License-Identifier: Apache-2.0
#include "parser/text/byte_limit.h"

#include "ir/core/str_cat.h"

namespace hlokit {

std::string ByteLimit::Message() const {
  return StrCat("the values have more bytes than the limit of ", most_, flag_.empty() ? "" : StrCat(" (", flag_, ")"));
}

}  // namespace hlokit
