// SPDX-License-Identifier: Apache-2.0
// Reads frontend attributes, `{key="text",other.key={braced text}}`.
#ifndef HLOKIT_PARSER_FRONTEND_ATTRIBUTES_PARSER_H_
#define HLOKIT_PARSER_FRONTEND_ATTRIBUTES_PARSER_H_

#include "ir/context.h"
#include "ir/ids.h"
#include "parser/reader.h"

namespace hlokit {

// The text must outlive the context: strings point into it.
bool ParseFrontendAttributes(Reader& in, Context* context, ListId* attributes);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_FRONTEND_ATTRIBUTES_PARSER_H_
