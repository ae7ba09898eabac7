// SPDX-License-Identifier: Apache-2.0
#include "parser/text/stack_frame_numbering.h"

namespace hlokit {
namespace {

// Returns the new number of entry `id` (from 1) of `from`, appending it to `to` if it is new; 0 if there is no such
// entry.
template <typename T>
int32_t Carry(const std::vector<T>& from, int32_t id, std::vector<int32_t>* number, std::vector<T>* to) {
  if (id < 1 || id > static_cast<int64_t>(from.size())) return 0;
  number->resize(from.size(), 0);
  int32_t& n = (*number)[static_cast<size_t>(id - 1)];
  if (n == 0) {
    to->push_back(from[static_cast<size_t>(id - 1)]);
    n = static_cast<int32_t>(to->size());
  }
  return n;
}

}  // namespace

int64_t StackFrameNumbering::Keep(int64_t id) {
  // New ancestors, child first. In the text `parent_frame_id` is the number of the parent plus 1, and 1 if there is
  // none. A cyclic chain ends at its first repetition.
  std::vector<int64_t> chain;
  while (id >= 1 && id <= static_cast<int64_t>(number_.size()) && number_[static_cast<size_t>(id - 1)] == 0) {
    chain.push_back(id);
    number_[static_cast<size_t>(id - 1)] = -1;
    id = int64_t{read_.stack_frames[static_cast<size_t>(id - 1)].parent_frame_id} - 1;
  }
  for (size_t i = chain.size(); i-- > 0;) {
    const StackFrame& frame = read_.stack_frames[static_cast<size_t>(chain[i] - 1)];
    const int64_t parent = int64_t{frame.parent_frame_id} - 1;
    const int32_t parent_number =
        parent >= 1 && parent <= static_cast<int64_t>(number_.size()) ? number_[static_cast<size_t>(parent - 1)] : 0;
    const size_t known = kept_.file_locations.size();
    const int32_t location = Carry(read_.file_locations, frame.file_location_id, &location_, &kept_.file_locations);
    if (kept_.file_locations.size() != known) {
      FileLocation& l = kept_.file_locations.back();
      l.file_name_id = Carry(read_.file_names, l.file_name_id, &file_, &kept_.file_names);
      l.function_name_id = Carry(read_.function_names, l.function_name_id, &function_, &kept_.function_names);
    }
    kept_.stack_frames.push_back({location, parent_number > 0 ? parent_number + 1 : 1});
    number_[static_cast<size_t>(chain[i] - 1)] = static_cast<int32_t>(kept_.stack_frames.size());
  }
  return kept_.stack_frames.size();
}

}  // namespace hlokit
