// SPDX-License-Identifier: Apache-2.0
// What the user can set: members of `hlo` in the client's configuration, or the initialization options.
#ifndef HLOKIT_TOOLS_HLO_LSP_SERVER_SETTINGS_H_
#define HLOKIT_TOOLS_HLO_LSP_SERVER_SETTINGS_H_

#include <cstdint>
#include <string>

#include "tools/hlo_lsp_server/json_rpc.h"

namespace hlokit::lsp {

enum class FormatStyle : uint8_t { kLong, kShort, kCanonical };

struct Settings {
  std::string device = "v5e";              // hlo.device: whose roofline times are shown, and that `simulate` simulates
  FormatStyle style = FormatStyle::kLong;  // hlo.format.style: long, short, canonical
  bool symbols_by_scope = false;           // hlo.symbols: "scope", or "computation"
  bool operand_shapes = true;              // hlo.inlayHints.operandShapes
  bool users = true;                       // hlo.inlayHints.users
  bool costs = true;                       // hlo.inlayHints.costs
  bool lenses = true;                      // hlo.codeLenses
  bool snippets = false;                   // what the client can insert
};

// Sets what `json` has; what is no valid value stays as it is.
void ReadSettings(const Json& json, Settings* settings);

}  // namespace hlokit::lsp

#endif  // HLOKIT_TOOLS_HLO_LSP_SERVER_SETTINGS_H_
