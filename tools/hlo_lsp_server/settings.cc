// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_lsp_server/settings.h"

#include "passes/target/device_description.h"
#include "tools/hlo_lsp_server/protocol.h"

namespace hlokit::lsp {

void ReadSettings(const Json& json, Settings* settings) {
  const Json* const hlo = Find(json, {"hlo"});
  const Json& own = hlo != nullptr && hlo->is_object() ? *hlo : json;
  const std::string device = StringAt(own, {"device"});
  if (tpu::BuiltinDeviceDescriptionText(device)) settings->device = device;
  const std::string style = StringAt(own, {"format", "style"});
  if (style == "long") settings->style = FormatStyle::kLong;
  if (style == "short") settings->style = FormatStyle::kShort;
  if (style == "canonical") settings->style = FormatStyle::kCanonical;
  const std::string symbols = StringAt(own, {"symbols"});
  if (symbols == "scope" || symbols == "computation") settings->symbols_by_scope = symbols == "scope";
  settings->operand_shapes = BoolAt(own, {"inlayHints", "operandShapes"}, settings->operand_shapes);
  settings->users = BoolAt(own, {"inlayHints", "users"}, settings->users);
  settings->costs = BoolAt(own, {"inlayHints", "costs"}, settings->costs);
  settings->lenses = BoolAt(own, {"codeLenses"}, settings->lenses);
}

}  // namespace hlokit::lsp
