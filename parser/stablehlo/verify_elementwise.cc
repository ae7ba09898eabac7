// SPDX-License-Identifier: Apache-2.0
#include "parser/stablehlo/verify_rules.h"

namespace hlokit::stablehlo {

bool Rules::CheckOperation() { return true; }

}  // namespace hlokit::stablehlo
