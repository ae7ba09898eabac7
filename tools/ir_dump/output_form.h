// SPDX-License-Identifier: Apache-2.0
// The form of ir-dump's output, as the suffix of the file says.
#ifndef HLOKIT_TOOLS_IR_DUMP_OUTPUT_FORM_H_
#define HLOKIT_TOOLS_IR_DUMP_OUTPUT_FORM_H_

#include <string>
#include <string_view>

#include "tools/ir_dump/session.h"
#include "tools/ir_dump/show_graphs.h"

namespace hlokit {

struct OutputForm {
  std::string path = "-";
  bool json = false;                       // one object with a member for each output
  std::string_view module_format = "hlo";  // of a module that is all of the output (cli::FormatOfPath)
};

// Chooses what the flags leave open by the suffix of `form->path`: one of JSON, of DOT, or of a format of modules for
// --emit=hlo or optimized-hlo alone, as in hlo-translate. Other suffixes are of text. `more_text`: other output goes to
// the file too. Returns the usage error of a suffix that contradicts what is printed; "" if it does not.
std::string ChooseBySuffix(bool more_text, OutputForm* form, EmitOptions* emit, InputForm* input);

}  // namespace hlokit

#endif  // HLOKIT_TOOLS_IR_DUMP_OUTPUT_FORM_H_
