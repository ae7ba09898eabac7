// SPDX-License-Identifier: Apache-2.0
#include "pjrt/values/event.h"

#include <utility>

#include "pjrt/values/error.h"
#include "pjrt/values/functions.h"

namespace hlokit::pjrt {

std::shared_ptr<Event> Event::Ready(absl::Status status) {
  auto event = std::make_shared<Event>();
  event->status_ = std::move(status);
  return event;
}

bool Event::Set(absl::Status status) {
  std::vector<Callback> callbacks;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (status_) return false;
    status_ = status;
    callbacks = std::move(callbacks_);
    changed_.notify_all();
  }
  for (const Callback& callback : callbacks) callback(status);
  return true;
}

std::optional<absl::Status> Event::Poll() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

absl::Status Event::Wait() const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return status_.has_value(); });
  return *status_;
}

void Event::OnReady(Callback callback) {
  absl::Status status;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!status_) {
      callbacks_.push_back(std::move(callback));
      return;
    }
    status = *status_;
  }
  callback(status);
}

PJRT_Event* NewEvent(std::shared_ptr<Event> state) { return new PJRT_Event{std::move(state)}; }

absl::Status Event_Destroy(PJRT_Event_Destroy_Args* args) {
  delete args->event;
  return absl::OkStatus();
}

absl::Status Event_IsReady(PJRT_Event_IsReady_Args* args) {
  args->is_ready = args->event->state->Poll().has_value();
  return absl::OkStatus();
}

absl::Status Event_Error(PJRT_Event_Error_Args* args) {
  const std::optional<absl::Status> status = args->event->state->Poll();
  return status ? *status : absl::FailedPreconditionError("PJRT_Event_Error: the event is not ready");
}

absl::Status Event_Await(PJRT_Event_Await_Args* args) {
  const std::shared_ptr<Event> state = args->event->state;
  return state->Wait();
}

absl::Status Event_OnReady(PJRT_Event_OnReady_Args* args) {
  if (args->callback == nullptr) return absl::InvalidArgumentError("PJRT_Event_OnReady: the callback is null");
  const std::shared_ptr<Event> state = args->event->state;
  state->OnReady([callback = args->callback, user_arg = args->user_arg](const absl::Status& status) {
    callback(NewError(status), user_arg);
  });
  return absl::OkStatus();
}

absl::Status Event_Create(PJRT_Event_Create_Args* args) {
  args->event = NewEvent(std::make_shared<Event>());
  return absl::OkStatus();
}

absl::Status Event_Set(PJRT_Event_Set_Args* args) {
  const std::shared_ptr<Event> state = args->event->state;
  if (!state->Set(StatusOf(args->error_code, args->error_message, args->error_message_size))) {
    return absl::FailedPreconditionError("PJRT_Event_Set: the event is set already");
  }
  return absl::OkStatus();
}

}  // namespace hlokit::pjrt
