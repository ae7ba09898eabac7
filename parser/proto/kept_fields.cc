// SPDX-License-Identifier: Apache-2.0
#include "parser/proto/kept_fields.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ir/core/hashing.h"
#include "parser/proto/serialize.h"
#include "parser/proto/wire_format.h"

namespace hlokit {
namespace {

// Fields of an instruction that stand for the same: backend_config, custom_call_opaque and backend_config_payload;
// channel_id and all_reduce_id; the lists of devices; the two forms of the prefetch index. No other message here has
// fields of these numbers.
int GroupOf(int number) {
  switch (number) {
    case 53:
    case 99:
      return 43;
    case 45:
      return 26;
    case 87:
    case 92:
    case 93:
      return 49;
    case 80:
      return 73;
    default:
      return number;
  }
}

std::map<int, std::string> Groups(std::string_view message) {
  std::map<int, std::string> groups;
  WireReader in(message);
  WireField field;
  while (in.Next(&field)) groups[GroupOf(field.number)].append(field.whole);
  return groups;
}

uint64_t Hash(const std::string& bytes) { return HashBytes(bytes.data(), bytes.size()); }

}  // namespace

KeptMessage KeptMessage::Difference(std::string_view read, std::string_view written) {
  KeptMessage kept;
  if (read == written) return kept;
  std::map<int, std::string> were = Groups(read);
  std::map<int, std::string> are = Groups(written);
  for (const auto& [number, bytes] : are) were[number];
  for (auto& [number, bytes] : were) {
    const std::string& now = are[number];
    if (bytes != now) kept.groups_.push_back({number, Hash(now), std::move(bytes)});
  }
  return kept;
}

void KeptMessage::Restore(google::protobuf::Message* written) const {
  if (groups_.empty()) return;
  const std::string now_bytes = SerializedMessage(*written);
  std::map<int, std::string> fields = Groups(now_bytes);
  for (const Group& group : groups_) {
    std::string& now = fields[group.number];
    if (Hash(now) == group.written) now = group.read;
  }
  std::string bytes;
  for (const auto& [number, field] : fields) bytes += field;
  written->ParsePartialFromString(bytes);
}

}  // namespace hlokit
