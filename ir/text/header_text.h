// SPDX-License-Identifier: Apache-2.0
// Header of a module as text: the line that begins with `HloModule`, and the tables of stack frames.
#ifndef HLOKIT_IR_TEXT_HEADER_TEXT_H_
#define HLOKIT_IR_TEXT_HEADER_TEXT_H_

#include "ir/core/text_writer.h"
#include "ir/graph/module.h"
#include "ir/text/printer.h"

namespace hlokit {

// Prints the line, which has several lines if there are debug attributes, without the newline at its end.
void PrintModuleHeader(TextWriter& out, const Module& module, const PrintOptions& options);
// Prints the tables, or nothing if there are none or the options omit them.
void PrintStackFrames(TextWriter& out, const Module& module, const PrintOptions& options);

}  // namespace hlokit

#endif  // HLOKIT_IR_TEXT_HEADER_TEXT_H_
