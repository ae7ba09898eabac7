// SPDX-License-Identifier: Apache-2.0
// The stack-frame tables as XLA keeps them: only what instructions refer to, in the order in which they first do,
// parents before children.
#ifndef HLOKIT_PARSER_CORE_STACK_FRAME_NUMBERING_H_
#define HLOKIT_PARSER_CORE_STACK_FRAME_NUMBERING_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/graph/module_header.h"

namespace hlokit {

class StackFrameNumbering {
 public:
  explicit StackFrameNumbering(StackFrames read) : read_(std::move(read)), number_(read_.stack_frames.size(), 0) {}

  // The number that stands for frame `id` (from 1) from now on; 0 if the tables have no such frame.
  int64_t Number(int64_t id) {
    if (id < 1 || id > static_cast<int64_t>(number_.size())) return 0;
    const int32_t known = number_[static_cast<size_t>(id - 1)];
    return known != 0 ? known : Keep(id);
  }

  // The tables of what was numbered.
  StackFrames Take() { return std::move(kept_); }

 private:
  int64_t Keep(int64_t id);

  StackFrames read_;
  std::vector<int32_t> number_;  // by frame of read_; 0: not referred to yet
  std::vector<int32_t> location_, file_, function_;
  StackFrames kept_;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_CORE_STACK_FRAME_NUMBERING_H_
