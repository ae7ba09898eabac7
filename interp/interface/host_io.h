// SPDX-License-Identifier: Apache-2.0
// Host side of infeed, outfeed and of send and recv with is_host_transfer: queues of values.
#ifndef HLOKIT_INTERP_INTERFACE_HOST_IO_H_
#define HLOKIT_INTERP_INTERFACE_HOST_IO_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/graph/context.h"
#include "ir/types/literal.h"
#include "ir/types/shape.h"

namespace hlokit::interp {

class HostIo {
 public:
  virtual ~HostIo() = default;
  // Receives the next value of a queue for a device: "infeed", "recv.CHANNEL". Fills the literals of `leaves`, one for
  // each array leaf. An error ends the run.
  virtual absl::Status Receive(std::string_view queue, int64_t device, absl::Span<Literal> leaves) = 0;
  // Sends a value from a device to a queue: "outfeed", "send.CHANNEL".
  virtual absl::Status Send(std::string_view queue, int64_t device, absl::Span<const Literal> leaves) = 0;
};

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

#endif  // HLOKIT_INTERP_INTERFACE_HOST_IO_H_
