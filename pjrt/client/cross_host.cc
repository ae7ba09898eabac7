// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client/cross_host.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "pjrt/client/buffer.h"
#include "pjrt/values/error.h"
#include "pjrt/values/event.h"

namespace hlokit::pjrt {
namespace {

// The label of a transfer, which the framework numbers in all processes alike.
interp::ProcessNetwork::Label LabelOfTransfer(int64_t key, int64_t source, int64_t target) {
  constexpr uint64_t kTransfers = 1;  // a number of no devices that run programs together
  return {kTransfers, static_cast<uint64_t>(key), static_cast<uint64_t>(source), static_cast<uint64_t>(target)};
}

absl::StatusOr<PJRT_Device*> PartnerOf(PJRT_Client* client, int32_t id) {
  PJRT_Device* const device = client->FindDevice(id);
  if (device == nullptr) return absl::InvalidArgumentError(StrCat("there is no device ", static_cast<int64_t>(id)));
  if (client->network == nullptr) return absl::FailedPreconditionError("there is one process");
  return device;
}

}  // namespace

absl::Status CrossHostSendBuffers(PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args* args) {
  std::vector<int> processes;
  for (size_t i = 0; i < args->num_buffers; ++i) {
    const absl::StatusOr<PJRT_Device*> target = PartnerOf(args->client, args->dst_global_device_ids[i]);
    if (!target.ok()) return target.status();
    processes.push_back((*target)->description->process_index);
  }
  for (size_t i = 0; i < args->num_buffers; ++i) {
    const PJRT_Buffer& buffer = *args->buffers[i];
    auto sent = std::make_shared<Event>();
    args->send_events[i] = NewEvent(sent);
    const interp::ProcessNetwork::Label label =
        LabelOfTransfer(args->transfer_keys[i], buffer.device()->description->id, args->dst_global_device_ids[i]);
    PJRT_Client* const client = args->client;
    buffer.WhenReady([=, process = processes[i]](const absl::StatusOr<const Literal*>& value) {
      if (!value.ok()) {
        sent->Set(value.status());
        return;
      }
      // Not here: this may be the thread that receives, on which the other process may wait to be read.
      const auto* const bytes = reinterpret_cast<const char*>((*value)->data());
      client->sender.Add([=, copy = std::string(bytes, (*value)->size_bytes())] {
        sent->Set(client->network->Send(process, label, copy.data(), copy.size(), client->config.CollectiveLimit()));
      });
    });
  }
  return absl::OkStatus();
}

absl::Status CrossHostReceiveBuffers(PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args* args) {
  const absl::StatusOr<PJRT_Memory*> memory = MemoryOf(args->client, nullptr, args->device);
  if (!memory.ok()) return memory.status();
  std::vector<BufferSpec> specs;
  std::vector<int> processes;
  for (size_t i = 0; i < args->num_shapes; ++i) {
    absl::StatusOr<BufferSpec> spec =
        ReadBufferSpec(args->element_types[i], args->num_dims[i], args->shape_num_dims[i]);
    if (!spec.ok()) return spec.status();
    const absl::StatusOr<PJRT_Device*> source = PartnerOf(args->client, args->src_global_device_ids[i]);
    if (!source.ok()) return source.status();
    specs.push_back(*std::move(spec));
    processes.push_back((*source)->description->process_index);
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    const std::shared_ptr<runtime::DeviceBuffer> value = args->device->runtime->CreatePendingBuffer();
    auto ready = std::make_shared<Event>();
    const auto [context, shape] = args->client->ShapeOf(specs[i].type, specs[i].dims);
    args->buffers[i] = new PJRT_Buffer(*memory, specs[i], value, ready);
    const interp::ProcessNetwork::Label label =
        LabelOfTransfer(args->transfer_keys[i], args->src_global_device_ids[i], args->device->description->id);
    args->client->network->TakeWhenHere(
        processes[i], label,
        [=, context = context, shape = shape, process = processes[i]](absl::StatusOr<std::string> bytes) {
          Literal received = Literal::Zeros(shape);
          absl::Status status =
              bytes.ok() ? absl::OkStatus()
                         : absl::Status(bytes.status().code(), StrCat("an array of process ", process, ": ",
                                                                      std::string(bytes.status().message())));
          if (bytes.ok() && bytes->size() != received.size_bytes()) {
            status = absl::InvalidArgumentError(StrCat("process ", process, " sent ",
                                                       static_cast<int64_t>(bytes->size()), " bytes for an array of ",
                                                       static_cast<int64_t>(received.size_bytes())));
          }
          if (status.ok()) {
            if (!bytes->empty()) std::memcpy(received.data(), bytes->data(), bytes->size());
            value->SetValue(std::move(received), context);
          } else {
            value->Fail(status);
          }
          ready->Set(status);
        });
  }
  return absl::OkStatus();
}

absl::Status MakeCrossHostReceiveBuffers(PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args*) {
  return absl::UnimplementedError("transfers between processes by descriptors");
}

void CopyToRemoteDevice(PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args* args) {
  args->on_done(NewError(absl::UnimplementedError("transfers between processes by descriptors")),
                /*sends_were_enqueued=*/false, args->user_arg);
}

}  // namespace hlokit::pjrt
