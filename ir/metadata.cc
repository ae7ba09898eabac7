#include "ir/metadata.h"

#include "absl/container/flat_hash_set.h"

namespace hlokit {

std::vector<MetadataId> MetadataPool::Origins(MetadataId id) const {
  std::vector<MetadataId> origins;
  if (!id.valid()) return origins;
  if (!IsMerged(id)) return {id};
  absl::flat_hash_set<uint32_t> seen = {id.value};
  std::vector<MetadataId> open = {id};
  while (!open.empty()) {
    const MetadataId at = open.back();
    open.pop_back();
    const Record& r = records_[at.value];
    if (!r.merged_main.valid()) {
      origins.push_back(at);
      continue;
    }
    if (seen.insert(r.merged_other.value).second) open.push_back(r.merged_other);
    if (seen.insert(r.merged_main.value).second) open.push_back(r.merged_main);
  }
  return origins;
}

}  // namespace hlokit
