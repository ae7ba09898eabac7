// SPDX-License-Identifier: Apache-2.0
// The host side of transfers in files.
#ifndef HLOKIT_INTERP_PROGRAM_FILE_HOST_IO_H_
#define HLOKIT_INTERP_PROGRAM_FILE_HOST_IO_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "interp/interface/host_io.h"
#include "ir/graph/context.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

// Queues in files of a directory: QUEUE.txt, or QUEUE.DEVICE.txt with several devices, one array leaf a line in the
// format of arguments.
class FileHostIo : public HostIo {
 public:
  // `context`: the module's.
  FileHostIo(std::string directory, Context* context, int64_t devices)
      : directory_(std::move(directory)), context_(context), devices_(devices) {}

  absl::Status Receive(std::string_view queue, int64_t device, absl::Span<Literal> leaves) override;
  absl::Status Send(std::string_view queue, int64_t device, absl::Span<const Literal> leaves) override;
  // Writes the values that were sent. Does not touch files of unused queues.
  absl::Status Finish() const;

 private:
  struct Input {
    std::string text;
    size_t next = 0;  // first unread byte
  };
  std::string PathOf(std::string_view queue, int64_t device) const;

  const std::string directory_;
  Context* const context_;
  const int64_t devices_;
  std::map<std::string, Input> inputs_;         // by path
  std::map<std::string, std::string> outputs_;  // by path
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROGRAM_FILE_HOST_IO_H_
