// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/entry_signature.h"

#include <utility>

namespace hlokit {

void RefreshEntrySignature(Module& module) {
  ModuleHeader& header = module.header();
  EntryLayout layout;
  for (int64_t k = 0; k < module.entry().parameter_count(); ++k) {
    layout.parameters.push_back(module.entry().parameter(k).shape());
  }
  layout.result = module.entry().root().shape();
  if (header.entry_layout && header.entry_layout->parameters == layout.parameters &&
      header.entry_layout->result == layout.result) {
    return;
  }
  header.entry_layout = std::move(layout);
  header.input_output_alias.clear();
  header.buffer_donor.clear();
  header.alias_passthrough_params = false;
  header.allow_spmd_sharding_propagation_to_parameters = ListId();
  header.allow_spmd_sharding_propagation_to_output = ListId();
}

}  // namespace hlokit
