// SPDX-License-Identifier: Apache-2.0
// What StableHLO says of the arguments and results of main and HLO has no place for: attributes that are kept as text.
#ifndef HLOKIT_PJRT_EXECUTION_ENTRY_ATTRIBUTES_H_
#define HLOKIT_PJRT_EXECUTION_ENTRY_ATTRIBUTES_H_

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit::pjrt {

// A leaf of a parameter or of the result of the entry, with the value of an attribute; "" without it.
struct EntryLeaf {
  Shape shape;
  std::string value;
};

// Returns the leaves of the parameters, and behind them those of the result, with the string attribute `name`. All
// leaves of a parameter have its attribute.
std::vector<EntryLeaf> EntryLeaves(const Module& module, std::string_view name);

// Attributes of the header, where passes and serialization keep what was read. "" if there is none.
std::string_view HeaderAttribute(const Module& module, std::string_view name);
void SetHeaderAttribute(Module* module, std::string_view name, std::string_view value);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_EXECUTION_ENTRY_ATTRIBUTES_H_
