// SPDX-License-Identifier: Apache-2.0
// Instructions by their names, as users write them.
#ifndef HLOKIT_PASSES_QUERY_NAMED_H_
#define HLOKIT_PASSES_QUERY_NAMED_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"

namespace hlokit::query {

// Finds an instruction by `NAME`, `%NAME` or `COMPUTATION/NAME`, that of the entry computation if there are several
// (texts are read with unique names). Returns an error with a suggestion if there is none.
absl::StatusOr<Instruction> FindNamed(const Module& module, std::string_view name);

}  // namespace hlokit::query

#endif  // HLOKIT_PASSES_QUERY_NAMED_H_
