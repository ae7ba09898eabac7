// SPDX-License-Identifier: Apache-2.0
// Parses the value of one attribute that is not part of a module's text.
#ifndef HLOKIT_PARSER_HLO_ATTRIBUTE_VALUE_H_
#define HLOKIT_PARSER_HLO_ATTRIBUTE_VALUE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/context.h"
#include "ir/ops/attribute.h"

namespace hlokit {

// Returns the payload of `attr` for its value in HLO text, as after `name=`. Not for attributes that name computations
// or instructions.
absl::StatusOr<uint32_t> ParseAttributeValue(Attr attr, std::string_view text, Context* context);
// The same; returns nullopt after errors, which are in the sink, with offsets in `text`.
std::optional<uint32_t> ParseAttributeValue(Attr attr, std::string_view text, Context* context, DiagnosticSink* sink);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_ATTRIBUTE_VALUE_H_
