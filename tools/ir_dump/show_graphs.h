// SPDX-License-Identifier: Apache-2.0
// Output of ir-dump for a file of lazy graphs.
#ifndef HLOKIT_TOOLS_IR_DUMP_SHOW_GRAPHS_H_
#define HLOKIT_TOOLS_IR_DUMP_SHOW_GRAPHS_H_

#include <cstddef>
#include <string>

#include "ir/core/text_writer.h"
#include "tools/cli/cli.h"

namespace hlokit {

struct InputForm {
  std::string path;
  std::string form;   // list, json, dedupe, print, normalize, dot, diff
  size_t graph = 0;   // from 1; 0: all
  std::string other;  // for diff: two numbers, "1,2"
};

// Reads the file and prints it in the given form.
void ShowGraphs(const InputForm& form, cli::DiagnosticReporter* diagnostics, TextWriter& out);

}  // namespace hlokit

#endif  // HLOKIT_TOOLS_IR_DUMP_SHOW_GRAPHS_H_
