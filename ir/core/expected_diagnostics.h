// SPDX-License-Identifier: Apache-2.0
// Tests of diagnostics inside their input: a comment contains the expected diagnostic of a line.
//
//   // expected-error {{text}}          on this line
//   // expected-error@+1 {{text}}       one line down; also @-2, @above, @below
//   // expected-warning {{text}}
//
// The text must be part of the message or of its kind in brackets, "[undefined-operand]".
#ifndef HLOKIT_IR_CORE_EXPECTED_DIAGNOSTICS_H_
#define HLOKIT_IR_CORE_EXPECTED_DIAGNOSTICS_H_

#include <string>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"

namespace hlokit {

// Returns the mismatches, a line each: unmet expectations of `source` between the offsets `begin` and `end`, and
// unexpected diagnostics. Empty if there are none.
std::string CompareWithExpected(const DiagnosticSink& sink, const SourceBuffer& source, size_t begin, size_t end);

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_EXPECTED_DIAGNOSTICS_H_
