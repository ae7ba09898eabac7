// SPDX-License-Identifier: Apache-2.0
#include "pjrt/execution/host_callbacks.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "pjrt/client/client.h"
#include "pjrt/values/arguments.h"
#include "pjrt/values/error.h"
#include "pjrt/values/event.h"
#include "pjrt/values/functions.h"
#include "pjrt/values/host_array.h"

namespace hlokit::pjrt {

// The bytes that a callback writes for one receive.
struct ReceivedBytes {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::byte> bytes;
  int64_t total = 0;
  bool open = true;  // the stream is not destroyed yet

  explicit ReceivedBytes(int64_t size) : total(size) { bytes.reserve(static_cast<size_t>(size)); }
};

}  // namespace hlokit::pjrt

// The caller's end of a receive, which may outlive it.
struct PJRT_CopyToDeviceStream {
  std::shared_ptr<hlokit::pjrt::ReceivedBytes> received;
};

namespace hlokit::pjrt {

bool HasHostTransfers(const Module& module) {
  for (const Computation computation : module.computations()) {
    for (const Instruction i : computation.instructions()) {
      if (i.bool_attr(Attr::kIsHostTransfer)) return true;
    }
  }
  return false;
}

DeviceCallbacks CallbacksOf(const PJRT_ExecuteOptions* options, size_t position) {
  using Options = PJRT_ExecuteOptions;
  DeviceCallbacks callbacks;
  if (options == nullptr) return callbacks;
  const size_t sends = FieldOr(*options, &Options::num_send_ops, {});
  const size_t receives = FieldOr(*options, &Options::num_recv_ops, {});
  for (size_t k = 0; options->send_callbacks != nullptr && k < sends; ++k) {
    const PJRT_SendCallbackInfo& info = options->send_callbacks[position][k];
    callbacks.send[info.channel_id] = info;
  }
  for (size_t k = 0; options->recv_callbacks != nullptr && k < receives; ++k) {
    const PJRT_RecvCallbackInfo& info = options->recv_callbacks[position][k];
    callbacks.receive[info.channel_id] = info;
  }
  if (PJRT_ExecuteContext* const context = FieldOr(*options, &Options::context, {}); context != nullptr) {
    callbacks.user_data = context->user_data;
  }
  return callbacks;
}

void HostCallbacks::Push(size_t position, DeviceCallbacks callbacks) {
  std::lock_guard<std::mutex> lock(mutex_);
  queues_[position].push_back(std::move(callbacks));
}

void HostCallbacks::Pop(size_t position) {
  SetFfiRun({});
  std::lock_guard<std::mutex> lock(mutex_);
  if (!queues_[position].empty()) queues_[position].pop_front();
}

void HostCallbacks::BeginRun(std::optional<size_t> position) {
  if (transfers_) {
    alone_ = position;
    begin_ = std::chrono::steady_clock::now();
  }
  // One call gives all devices of a program with collectives the same data.
  std::lock_guard<std::mutex> lock(mutex_);
  const size_t first = position.value_or(0);
  const bool given = first < queues_.size() && !queues_[first].empty();
  static std::atomic<int64_t> runs{0};
  FfiRun run;
  run.user_data = given ? queues_[first].front().user_data : nullptr;
  run.id = ++runs;
  for (const PJRT_Device* const device : DevicesOf(position)) run.devices.push_back(device->description->id);
  SetFfiRun(std::move(run));
}

absl::Span<const PJRT_Device* const> HostCallbacks::DevicesOf(std::optional<size_t> position) const {
  const absl::Span<const PJRT_Device* const> all(devices_);
  return position ? all.subspan(*position, 1) : all;
}

absl::StatusOr<DeviceCallbacks> HostCallbacks::Current(int64_t device) {
  const size_t position = alone_.value_or(static_cast<size_t>(device));
  std::lock_guard<std::mutex> lock(mutex_);
  if (position >= queues_.size() || queues_[position].empty()) {
    return absl::InternalError("a transfer of a run that has ended");
  }
  return queues_[position].front();
}

namespace {

// Returns the channel of "send.7"; an error for infeed and outfeed.
absl::StatusOr<int64_t> ChannelOf(std::string_view queue) {
  const size_t dot = queue.find('.');
  int64_t channel = 0;
  if (dot == queue.npos || !absl::SimpleAtoi(std::string(queue.substr(dot + 1)), &channel)) {
    return absl::UnimplementedError(StrCat(queue, " is not a channel of a callback"));
  }
  return channel;
}

PJRT_Error* NewCallbackError(PJRT_Error_Code code, const char* message, size_t message_size) {
  return NewError(StatusOf(code, message, message_size));
}

// Takes an error that a callback has returned.
absl::Status TakeError(PJRT_Error* error) {
  if (error == nullptr) return absl::OkStatus();
  const absl::Status status = StatusOf(error->code, error->message.data(), error->message.size());
  error->functions->destroy(error);
  return status.ok() ? absl::UnknownError("the callback failed") : status;
}

int64_t BytesOfAll(absl::Span<const Literal> leaves) {
  int64_t bytes = 0;
  for (const Literal& leaf : leaves) bytes += static_cast<int64_t>(leaf.size_bytes());
  return bytes;
}

// What waits until the callback that this thread is in returns.
struct WaitingRun {
  const HostCallbacks* program = nullptr;
  absl::Span<const PJRT_Device* const> devices;
};
thread_local WaitingRun waiting_run;

// Programs that run on a thread of a callback are short, and have no callbacks: scopes do not nest.
class CallbackScope {
 public:
  explicit CallbackScope(const WaitingRun& run) { waiting_run = run; }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;
  ~CallbackScope() { waiting_run = {}; }
};

}  // namespace

bool HostCallbacks::IsInCallback() { return waiting_run.program != nullptr; }

absl::Status HostCallbacks::CheckMayRun(const PJRT_Device* device, const HostCallbacks* program) {
  if (waiting_run.program == nullptr) return absl::OkStatus();
  const absl::Span<const PJRT_Device* const> waiting = waiting_run.devices;
  if (program == waiting_run.program) {
    return absl::FailedPreconditionError("a callback cannot run the program that waits until the callback returns");
  }
  if (std::find(waiting.begin(), waiting.end(), device) == waiting.end()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("a callback cannot run a program on device ", device->description->id,
             ", which waits until the callback returns: run it on another device, or after the callback"));
}

absl::Status HostCallbacks::Send(std::string_view queue, int64_t device, absl::Span<const Literal> leaves) {
  const absl::StatusOr<int64_t> channel = ChannelOf(queue);
  if (!channel.ok()) return channel.status();
  const absl::StatusOr<DeviceCallbacks> callbacks = Current(device);
  if (!callbacks.ok()) return callbacks.status();
  const auto it = callbacks->send.find(*channel);
  if (it == callbacks->send.end() || it->second.send_callback == nullptr) {
    return absl::InvalidArgumentError(StrCat("the run has no callback for sends on channel ", *channel));
  }
  const int64_t bytes = BytesOfAll(leaves);
  // The caller frees it.
  PJRT_Chunk chunk = {};
  chunk.data = std::malloc(static_cast<size_t>(bytes) + 1);
  if (chunk.data == nullptr) return absl::ResourceExhaustedError("out of memory: a value for the host");
  chunk.size = static_cast<size_t>(bytes);
  chunk.deleter = [](void* data, void*) { std::free(data); };
  auto* to = static_cast<std::byte*>(chunk.data);
  for (const Literal& leaf : leaves) {
    if (leaf.size_bytes() != 0) std::memcpy(to, leaf.data(), leaf.size_bytes());
    to += leaf.size_bytes();
  }
  PJRT_CallbackError make_error = NewCallbackError;
  const CallbackScope scope({this, DevicesOf(alone_)});
  return TakeError(it->second.send_callback(&chunk, &make_error, chunk.size, /*done=*/true, it->second.user_arg));
}

absl::Status HostCallbacks::Receive(std::string_view queue, int64_t device, absl::Span<Literal> leaves) {
  const absl::StatusOr<int64_t> channel = ChannelOf(queue);
  if (!channel.ok()) return channel.status();
  const absl::StatusOr<DeviceCallbacks> callbacks = Current(device);
  if (!callbacks.ok()) return callbacks.status();
  const auto it = callbacks->receive.find(*channel);
  if (it == callbacks->receive.end() || it->second.recv_callback == nullptr) {
    return absl::InvalidArgumentError(StrCat("the run has no callback for receives on channel ", *channel));
  }
  const auto received = std::make_shared<ReceivedBytes>(BytesOfAll(leaves));
  // The caller destroys the stream, after the last byte or to say that there is none.
  {
    const CallbackScope scope({this, DevicesOf(alone_)});
    it->second.recv_callback(new PJRT_CopyToDeviceStream{received}, it->second.user_arg);
  }
  std::unique_lock<std::mutex> lock(received->mutex);
  const auto complete = [&] { return static_cast<int64_t>(received->bytes.size()) == received->total; };
  const auto ended = [&] { return complete() || !received->open; };
  const std::chrono::duration<double> used = std::chrono::steady_clock::now() - begin_;
  const double seconds = std::min(limits_.wait, std::max(limits_.run - used.count(), 0.0));
  if (seconds == std::numeric_limits<double>::infinity()) {
    received->changed.wait(lock, ended);
  } else if (!received->changed.wait_for(lock, std::chrono::duration<double>(seconds), ended)) {
    const bool of_run = seconds < limits_.wait;
    return absl::DeadlineExceededError(
        StrCat("the callback of channel ", *channel, " has not answered: it had ",
               FormatDouble(of_run ? limits_.run : limits_.wait, 6), " s (option ",
               of_run ? "max_seconds" : "callback_seconds",
               "); a callback that runs a program on the device that it answers waits for ever"));
  }
  if (!complete()) {
    return absl::AbortedError(StrCat("the callback of channel ", *channel, " has ended its stream after ",
                                     static_cast<int64_t>(received->bytes.size()), " of ", received->total, " bytes"));
  }
  const std::byte* from = received->bytes.data();
  for (Literal& leaf : leaves) {
    if (leaf.size_bytes() != 0) std::memcpy(leaf.data(), from, leaf.size_bytes());
    from += leaf.size_bytes();
    Normalize(leaf.shape().element_type(), absl::MakeSpan(leaf.data(), leaf.size_bytes()));
  }
  return absl::OkStatus();
}

absl::Status CopyToDeviceStream_Destroy(PJRT_CopyToDeviceStream_Destroy_Args* args) {
  const std::unique_ptr<PJRT_CopyToDeviceStream> stream(args->stream);
  if (stream == nullptr) return absl::OkStatus();
  std::lock_guard<std::mutex> lock(stream->received->mutex);
  stream->received->open = false;
  stream->received->changed.notify_all();
  return absl::OkStatus();
}

absl::Status CopyToDeviceStream_AddChunk(PJRT_CopyToDeviceStream_AddChunk_Args* args) {
  if (args->chunk == nullptr) return absl::InvalidArgumentError("PJRT_CopyToDeviceStream_AddChunk: the chunk is null");
  const PJRT_Chunk chunk = *args->chunk;
  absl::Status status;
  {
    const std::shared_ptr<ReceivedBytes> received = args->stream->received;
    std::lock_guard<std::mutex> lock(received->mutex);
    const int64_t room = received->total - static_cast<int64_t>(received->bytes.size());
    if (chunk.size > static_cast<uint64_t>(room)) {
      status = absl::InvalidArgumentError(
          StrCat("a chunk of ", static_cast<int64_t>(chunk.size), " bytes for ", room, " bytes that are missing"));
    } else {
      const auto* const bytes = static_cast<const std::byte*>(chunk.data);
      if (chunk.size != 0) received->bytes.insert(received->bytes.end(), bytes, bytes + chunk.size);
      received->changed.notify_all();
    }
  }
  // Taken in any case.
  if (chunk.deleter != nullptr) chunk.deleter(chunk.data, chunk.deleter_arg);
  if (!status.ok()) return status;
  args->transfer_complete = NewEvent(Event::Ready());
  return absl::OkStatus();
}

absl::Status CopyToDeviceStream_TotalBytes(PJRT_CopyToDeviceStream_TotalBytes_Args* args) {
  args->total_bytes = args->stream->received->total;
  return absl::OkStatus();
}

// Chunks of any size.
absl::Status CopyToDeviceStream_GranuleSize(PJRT_CopyToDeviceStream_GranuleSize_Args* args) {
  args->granule_size_in_bytes = 1;
  return absl::OkStatus();
}

absl::Status CopyToDeviceStream_CurrentBytes(PJRT_CopyToDeviceStream_CurrentBytes_Args* args) {
  std::lock_guard<std::mutex> lock(args->stream->received->mutex);
  args->current_bytes = static_cast<int64_t>(args->stream->received->bytes.size());
  return absl::OkStatus();
}

}  // namespace hlokit::pjrt
