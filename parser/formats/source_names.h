// SPDX-License-Identifier: Apache-2.0
// Names of a source text in diagnostics.
#ifndef HLOKIT_PARSER_FORMATS_SOURCE_NAMES_H_
#define HLOKIT_PARSER_FORMATS_SOURCE_NAMES_H_

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/module.h"

namespace hlokit {

// Returns the diagnostics of a module that was read from `source` with the names that the text has: the parser makes
// names unique. Of StableHLO, where the place of an instruction is that of the operation it comes from, names are those
// of the module.
DiagnosticSink WithSourceNames(const DiagnosticSink& sink, const Module& module, const SourceBuffer& source);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_FORMATS_SOURCE_NAMES_H_
