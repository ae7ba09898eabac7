// SPDX-License-Identifier: Apache-2.0
#include "interp/processes/shared_items.h"

#include <cstdint>
#include <cstring>
#include <string_view>

#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

// What a process sends of an item, before its result.
struct ItemHeader {
  uint64_t item = 0;
  uint64_t bytes = 0;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ShareItems(MpiSession* session, size_t count,
                                                    const std::function<bool(size_t, std::string*)>& work) {
  session->EndSetup();
  std::string sent;
  for (bool more = true; more;) {
    const int64_t next = session->NextItem();
    if (next >= static_cast<int64_t>(count)) break;
    std::string result;
    more = work(static_cast<size_t>(next), &result);
    const ItemHeader header = {static_cast<uint64_t>(next), result.size()};
    sent.append(reinterpret_cast<const char*>(&header), sizeof(header));
    StrAppend(&sent, result);
  }
  const absl::StatusOr<std::vector<std::string>> all = session->AllGatherBytes(sent);
  if (!all.ok()) return all.status();
  std::vector<std::string> results(count);
  for (std::string_view rest : *all) {
    while (rest.size() >= sizeof(ItemHeader)) {
      ItemHeader header;
      std::memcpy(&header, rest.data(), sizeof(header));
      rest.remove_prefix(sizeof(header));
      if (header.item >= count || header.bytes > rest.size()) break;
      results[header.item] = std::string(rest.substr(0, header.bytes));
      rest.remove_prefix(header.bytes);
    }
  }
  return results;
}

}  // namespace hlokit::interp
