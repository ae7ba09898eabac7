// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/metadata.h"

#include "absl/container/flat_hash_set.h"

namespace hlokit {

std::vector<MetadataId> MetadataPool::Sources(MetadataId id) const {
  std::vector<MetadataId> origins;
  if (!id.valid()) return origins;
  if (!IsMerged(id)) return {id};
  // Depth first, in order of first occurrence: records may share sources.
  absl::flat_hash_set<uint32_t> seen;
  std::vector<MetadataId> open = {id};
  while (!open.empty()) {
    const MetadataId at = open.back();
    open.pop_back();
    if (!seen.insert(at.value).second) continue;
    const Record& r = records_[at.value];
    if (!r.merged_main.valid()) {
      origins.push_back(at);
      continue;
    }
    open.push_back(r.merged_other);
    open.push_back(r.merged_main);
  }
  return origins;
}

}  // namespace hlokit
