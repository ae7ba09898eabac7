// SPDX-License-Identifier: Apache-2.0
// The fields of Metadata by name, for code that iterates over all of them. In print order.
#ifndef HLOKIT_IR_GRAPH_METADATA_FIELDS_H_
#define HLOKIT_IR_GRAPH_METADATA_FIELDS_H_

#include <cstdint>
#include <string_view>

#include "ir/core/ids.h"
#include "ir/graph/metadata.h"

namespace hlokit {

// Exactly one of the members is not null.
struct MetadataField {
  std::string_view name;
  StringId Metadata::*string = nullptr;
  int64_t Metadata::*number = nullptr;
  ListId Metadata::*list = nullptr;
  bool Metadata::*flag = nullptr;
};

inline constexpr MetadataField kMetadataFields[] = {
    {"op_type", &Metadata::op_type},
    {"op_name", &Metadata::op_name},
    {"source_file", &Metadata::source_file},
    {"source_line", nullptr, &Metadata::source_line},
    {"source_end_line", nullptr, &Metadata::source_end_line},
    {"source_column", nullptr, &Metadata::source_column},
    {"source_end_column", nullptr, &Metadata::source_end_column},
    {"profile_type", nullptr, nullptr, &Metadata::profile_types},
    {"deduplicated_name", &Metadata::deduplicated_name},
    {"scheduling_name", &Metadata::scheduling_name},
    {"stack_frame_id", nullptr, &Metadata::stack_frame_id},
    {"metadata_payload", &Metadata::payload},
    {"preserve_layout", nullptr, nullptr, nullptr, &Metadata::preserve_layout},
};

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_METADATA_FIELDS_H_
