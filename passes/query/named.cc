// SPDX-License-Identifier: Apache-2.0
#include "passes/query/named.h"

#include <cstddef>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"

namespace hlokit::query {

absl::StatusOr<Instruction> FindNamed(const Module& module, std::string_view name) {
  std::string_view computation;
  if (const size_t slash = name.find('/'); slash != std::string_view::npos) {
    computation = name.substr(0, slash);
    name.remove_prefix(slash + 1);
  }
  for (std::string_view* word : {&name, &computation}) {
    if (word->starts_with('%')) word->remove_prefix(1);
  }
  Instruction found;
  std::vector<std::string_view> names;
  for (const Computation c : module.computations()) {
    if (!computation.empty() && c.name() != computation) continue;
    for (const Instruction i : c.instructions()) {
      names.push_back(i.name());
      if (i.name() != name) continue;
      if (c.is_entry()) return i;
      if (!found.valid()) found = i;
    }
  }
  if (found.valid()) return found;
  return absl::NotFoundError(StrCat("no instruction `", name, "`", DidYouMeanSuffix(name, names)));
}

}  // namespace hlokit::query
