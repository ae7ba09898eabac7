// SPDX-License-Identifier: Apache-2.0
// Renumbers stack-frame tables as XLA does: only entries that instructions refer to, in the order of first reference,
// parents before children.
#ifndef HLOKIT_PARSER_TEXT_STACK_FRAME_NUMBERING_H_
#define HLOKIT_PARSER_TEXT_STACK_FRAME_NUMBERING_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/graph/module_header.h"

namespace hlokit {

class StackFrameNumbering {
 public:
  // With `keep` the tables stay as they are.
  explicit StackFrameNumbering(StackFrames read, bool keep = false)
      : keep_(keep), read_(std::move(read)), number_(read_.stack_frames.size(), 0) {}

  // Returns the new number of frame `id` (from 1); 0 if the tables have no such frame.
  int64_t Number(int64_t id) {
    if (id < 1 || id > static_cast<int64_t>(number_.size())) return 0;
    if (keep_) return id;
    const int32_t known = number_[static_cast<size_t>(id - 1)];
    return known != 0 ? known : Keep(id);
  }

  // Returns the tables of the numbered entries.
  StackFrames Take() { return std::move(keep_ ? read_ : kept_); }

 private:
  int64_t Keep(int64_t id);

  bool keep_;
  StackFrames read_;
  std::vector<int32_t> number_;  // by frame of read_; 0: not referenced yet
  std::vector<int32_t> location_, file_, function_;
  StackFrames kept_;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_TEXT_STACK_FRAME_NUMBERING_H_
