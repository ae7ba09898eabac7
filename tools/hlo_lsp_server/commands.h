// SPDX-License-Identifier: Apache-2.0
// The commands that code lenses, code actions and extensions of clients run. Arguments: the URI of an open document,
// and an object: `name` of an instruction, `other` another file, `device`, `show`: false if the client shows the result
// itself.
//
//   hlo.simulate, hlo.run          {"text"}
//   hlo.graph, hlo.report          {"uri"} of a page
//   hlo.diff                       {"text", "uri"}, with `other`
//   hlo.reduce                     {"text", "uri"} of a module
//   hlo.extract                    {"uri"} of a module, a file beside the document
//   hlo.removeDead                 null; edits the document
#ifndef HLOKIT_TOOLS_HLO_LSP_SERVER_COMMANDS_H_
#define HLOKIT_TOOLS_HLO_LSP_SERVER_COMMANDS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/hlo_lsp_server/document.h"
#include "tools/hlo_lsp_server/json_rpc.h"
#include "tools/hlo_lsp_server/protocol.h"
#include "tools/hlo_lsp_server/settings.h"
#include "tools/hlo_lsp_server/tool_runner.h"

namespace hlokit::lsp {

// A tool that runs for a command.
struct StartedTool {
  ToolRun run;
  std::string tool;
  std::string output_path;  // what it writes; "": nothing but text
  int highest_ok = 0;       // exit codes above it are errors
};

std::vector<std::string_view> CommandNames();
// Returns true for a command that a tool carries out.
bool RunsTool(std::string_view command);
absl::StatusOr<StartedTool> StartTool(std::string_view command, const Document& document, const Json& options,
                                      const Settings& settings, ScratchFolder* scratch);

// Writes the part of the module that computes the instruction to a new file beside the document, or into a temporary
// folder if the document is no file. Returns its path.
absl::StatusOr<std::string> ExtractToFile(Document& document, std::string_view name, ScratchFolder* scratch);

// The ranges of the text that removing dead instructions and computations removes, in order; a whole line with its line
// break.
absl::StatusOr<std::vector<TextRange>> DeadRanges(Document& document);

}  // namespace hlokit::lsp

#endif  // HLOKIT_TOOLS_HLO_LSP_SERVER_COMMANDS_H_
