// SPDX-License-Identifier: Apache-2.0
// Modules that the header of another one quotes, in HLO text.
#ifndef HLOKIT_PARSER_HLO_QUOTED_MODULE_H_
#define HLOKIT_PARSER_HLO_QUOTED_MODULE_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "parser/text/parse_options.h"

namespace hlokit {

// Returns the module, or the first error. `options`: those of the module around it.
absl::StatusOr<std::unique_ptr<Module>> ParseQuotedModule(std::string_view text, ParseOptions options = {});

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_QUOTED_MODULE_H_
