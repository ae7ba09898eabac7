// SPDX-License-Identifier: Apache-2.0
// Frontend attributes: key-value strings that frontends attach to instructions and modules,
// `frontend_attributes={_scheduling_group_id="1",xla.sdy.meshes={mesh = #sdy.mesh<["x"=2]>}}`. In the IR an interned
// list (attribute type kFrontendAttributes): key and value of each entry, sorted by key.
#ifndef HLOKIT_IR_TEXT_FRONTEND_ATTRIBUTES_H_
#define HLOKIT_IR_TEXT_FRONTEND_ATTRIBUTES_H_

#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/ids.h"
#include "ir/core/text_writer.h"
#include "ir/graph/context.h"
#include "ir/graph/module.h"

namespace hlokit {

using FrontendAttribute = std::pair<StringId, StringId>;

// Sorts the entries; the last one of a duplicate key wins.
ListId EncodeFrontendAttributes(Context* context, std::vector<FrontendAttribute> entries);
std::vector<FrontendAttribute> DecodeFrontendAttributes(const Context& context, ListId id);

// Returns the value of `key`, or an invalid id. `id` may be invalid.
StringId FindFrontendAttribute(const Context& context, ListId id, std::string_view key);
StringId FindFrontendAttribute(Instruction instruction, std::string_view key);
// Returns the meshes of Shardy in the header, as in `{mesh = #sdy.mesh<["x"=2]>}`, or "".
std::string_view SdyMeshesOf(const Module& module);
// Return the attributes with the entry added, replaced or removed.
ListId WithFrontendAttribute(Context* context, ListId id, std::string_view key, std::string_view value);
ListId WithoutFrontendAttribute(Context* context, ListId id, std::string_view key);

// Prints the braces too. Values that are balanced text in braces are printed verbatim, others in quotes.
void PrintFrontendAttributes(TextWriter& out, const Context& context, ListId id);

}  // namespace hlokit

#endif  // HLOKIT_IR_TEXT_FRONTEND_ATTRIBUTES_H_
