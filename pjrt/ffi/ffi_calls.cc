// SPDX-License-Identifier: Apache-2.0
#include "pjrt/ffi/ffi_calls.h"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <optional>
#include <thread>
#include <vector>

#include "ir/core/str_cat.h"

struct XLA_FFI_Error {
  absl::Status status;
  std::string message;
};

struct XLA_FFI_Future {
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<absl::Status> status;
  };
  std::shared_ptr<State> state = std::make_shared<State>();
};

namespace hlokit::pjrt {
namespace {

XLA_FFI_Error* NewFfiError(absl::Status status) {
  std::string message(status.message());
  return new XLA_FFI_Error{std::move(status), std::move(message)};
}

XLA_FFI_Error* ErrorOf(absl::Status status) { return status.ok() ? nullptr : NewFfiError(std::move(status)); }

// ---- errors ----

XLA_FFI_Error* CreateError(XLA_FFI_Error_Create_Args* args) {
  const bool known = args->errc > 0 && args->errc <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return NewFfiError(absl::Status(known ? static_cast<absl::StatusCode>(args->errc) : absl::StatusCode::kUnknown,
                                  args->message == nullptr ? "" : args->message));
}

void GetErrorDetails(XLA_FFI_Error_GetDetails_Args* args) {
  args->message = args->error->message.c_str();
  if (args->struct_size >= offsetof(XLA_FFI_Error_GetDetails_Args, errc) + sizeof(args->errc)) {
    args->errc = static_cast<XLA_FFI_Error_Code>(args->error->status.code());
  }
}

void DestroyFfiError(XLA_FFI_Error_Destroy_Args* args) { delete args->error; }

absl::Status TakeFfiError(XLA_FFI_Error* error) {
  const std::unique_ptr<XLA_FFI_Error> owned(error);
  return owned->status.ok() ? absl::UnknownError("the handler failed") : owned->status;
}

// ---- handlers and types ----

std::string_view TextOfSpan(const XLA_FFI_ByteSpan& span) {
  return span.ptr == nullptr ? std::string_view() : std::string_view(span.ptr, span.len);
}

XLA_FFI_Error* RegisterHandler(XLA_FFI_Handler_Register_Args* args) {
  return ErrorOf(RegisterFfiHandler(TextOfSpan(args->name), TextOfSpan(args->platform), args->bundle));
}

XLA_FFI_Error* RegisterType(XLA_FFI_Type_Register_Args* args) {
  if (args->type_id == nullptr) return NewFfiError(absl::InvalidArgumentError("XLA_FFI_Type_Register: the id is null"));
  const auto deleter = args->type_info == nullptr ? nullptr : args->type_info->deleter;
  return ErrorOf(RegisterFfiType(TextOfSpan(args->name), deleter, &args->type_id->type_id));
}

// ---- contexts ----

XLA_FFI_Error* GetUserData(XLA_FFI_ExecutionContext_Get_Args* args) {
  if (args->ctx == nullptr || args->type_id == nullptr) {
    return NewFfiError(absl::InvalidArgumentError("XLA_FFI_ExecutionContext_Get: the context or the type is null"));
  }
  if (args->ctx->user_data != nullptr) {
    FfiUserData& user = *args->ctx->user_data;
    const std::lock_guard<std::mutex> lock(user.mutex);
    if (const auto it = user.data.find(args->type_id->type_id); it != user.data.end()) {
      args->data = it->second;
      return nullptr;
    }
  }
  return NewFfiError(absl::NotFoundError(StrCat("the run has no data of the type ", args->type_id->type_id)));
}

// Returns the state of a stage; an error if the call has none.
absl::StatusOr<FfiState*> StateOf(const XLA_FFI_State_Args& args) {
  if (args.ctx == nullptr || args.type_id == nullptr) {
    return absl::InvalidArgumentError("the context or the type of a state is null");
  }
  const XLA_FFI_ExecutionContext& context = *args.ctx;
  if (context.call != nullptr && args.stage == XLA_FFI_ExecutionStage_INSTANTIATE) return &context.call->instantiated;
  if (context.of_device != nullptr && args.stage == XLA_FFI_ExecutionStage_PREPARE) {
    return &context.of_device->prepared;
  }
  if (context.of_device != nullptr && args.stage == XLA_FFI_ExecutionStage_INITIALIZE) {
    return &context.of_device->initialized;
  }
  return absl::InvalidArgumentError(StrCat("the call has no state of stage ", static_cast<int>(args.stage)));
}

XLA_FFI_Error* SetState(XLA_FFI_State_Args* args) {
  const absl::StatusOr<FfiState*> state = StateOf(*args);
  return ErrorOf(state.ok() ? (*state)->Set(args->type_id->type_id, args->state) : state.status());
}

XLA_FFI_Error* GetState(XLA_FFI_State_Args* args) {
  const absl::StatusOr<FfiState*> state = StateOf(*args);
  if (!state.ok()) return NewFfiError(state.status());
  const absl::StatusOr<void*> found = (*state)->Get(args->type_id->type_id);
  if (!found.ok()) return NewFfiError(found.status());
  args->state = *found;
  return nullptr;
}

XLA_FFI_Error* GetRunId(XLA_FFI_RunId_Get_Args* args) {
  args->run_id = args->ctx == nullptr ? 0 : args->ctx->run_id;
  return nullptr;
}

XLA_FFI_Error* GetDeviceOrdinal(XLA_FFI_DeviceOrdinal_Get_Args* args) {
  args->device_ordinal = args->ctx == nullptr ? 0 : static_cast<int32_t>(args->ctx->device);
  return nullptr;
}

XLA_FFI_Error* FindExtension(XLA_FFI_InvokeContext_FindExtension_Args* args) {
  args->extension = nullptr;
  return nullptr;
}

XLA_FFI_Error* GetCustomOptions(XLA_FFI_CustomOptions_Get_Args* args) {
  static const XLA_FFI_Attrs none = {sizeof(XLA_FFI_Attrs), nullptr, 0, nullptr, nullptr, nullptr};
  args->attrs = &none;
  return nullptr;
}

// ---- threads ----

// Runs tasks of handlers. Lives as long as the process: so may a task.
class TaskThreads {
 public:
  static TaskThreads& Get() {
    static auto* const threads = new TaskThreads();
    return *threads;
  }
  int64_t count() const { return count_; }
  void Schedule(void (*task)(void* data), void* data) {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.emplace_back(task, data);
    if (static_cast<int64_t>(tasks_.size()) > idle_ && started_ < count_) {
      ++started_;
      std::thread([this] { Work(); }).detach();
    }
    changed_.notify_one();
  }

 private:
  TaskThreads() : count_(std::max<int64_t>(std::thread::hardware_concurrency(), 1)) {}
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      ++idle_;
      changed_.wait(lock, [this] { return !tasks_.empty(); });
      --idle_;
      const auto [task, data] = tasks_.front();
      tasks_.pop_front();
      lock.unlock();
      task(data);
      lock.lock();
    }
  }

  const int64_t count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<void (*)(void* data), void*>> tasks_;
  int64_t started_ = 0, idle_ = 0;
};

XLA_FFI_Error* Schedule(XLA_FFI_ThreadPool_Schedule_Args* args) {
  if (args->task == nullptr) return NewFfiError(absl::InvalidArgumentError("the task is null"));
  TaskThreads::Get().Schedule(args->task, args->data);
  return nullptr;
}

XLA_FFI_Error* GetNumThreads(XLA_FFI_ThreadPool_NumThreads_Args* args) {
  *args->num_threads = TaskThreads::Get().count();
  return nullptr;
}

// ---- futures ----

XLA_FFI_Error* CreateFuture(XLA_FFI_Future_Create_Args* args) {
  args->future = new XLA_FFI_Future();
  return nullptr;
}

// The future may be destroyed as soon as its state has a status.
void SetFuture(const XLA_FFI_Future* future, absl::Status status) {
  const std::shared_ptr<XLA_FFI_Future::State> state = future->state;
  const std::lock_guard<std::mutex> lock(state->mutex);
  if (!state->status) state->status = std::move(status);
  state->changed.notify_all();
}

XLA_FFI_Error* SetFutureAvailable(XLA_FFI_Future_SetAvailable_Args* args) {
  SetFuture(args->future, absl::OkStatus());
  return nullptr;
}

XLA_FFI_Error* SetFutureError(XLA_FFI_Future_SetError_Args* args) {
  if (args->error == nullptr) return NewFfiError(absl::InvalidArgumentError("the error of a future is null"));
  SetFuture(args->future, TakeFfiError(args->error));
  return nullptr;
}

absl::Status Await(const XLA_FFI_Future& future) {
  std::unique_lock<std::mutex> lock(future.state->mutex);
  future.state->changed.wait(lock, [&] { return future.state->status.has_value(); });
  return *future.state->status;
}

XLA_FFI_Error* Unimplemented(void*) {
  return NewFfiError(absl::UnimplementedError("hlokit does not implement this function for handlers of custom calls"));
}

}  // namespace

const XLA_FFI_Api* FfiApi() {
  static const XLA_FFI_Api api = {
      .struct_size = sizeof(XLA_FFI_Api),
      .extension_start = nullptr,
      .api_version = {sizeof(XLA_FFI_Api_Version), nullptr, XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR},
      .internal_api = nullptr,
      .XLA_FFI_Error_Create = CreateError,
      .XLA_FFI_Error_GetDetails = GetErrorDetails,
      .XLA_FFI_Error_Destroy = DestroyFfiError,
      .XLA_FFI_Handler_Register = RegisterHandler,
      .XLA_FFI_Stream_Get = Unimplemented,
      .XLA_FFI_Type_Register = RegisterType,
      .XLA_FFI_ExecutionContext_Get = GetUserData,
      .XLA_FFI_State_Set = SetState,
      .XLA_FFI_State_Get = GetState,
      .XLA_FFI_DeviceMemory_Allocate = Unimplemented,
      .XLA_FFI_DeviceMemory_Free = Unimplemented,
      .XLA_FFI_ThreadPool_Schedule = Schedule,
      .XLA_FFI_ThreadPool_NumThreads = GetNumThreads,
      .XLA_FFI_Future_Create = CreateFuture,
      .XLA_FFI_Future_SetAvailable = SetFutureAvailable,
      .XLA_FFI_Future_SetError = SetFutureError,
      .XLA_FFI_RunId_Get = GetRunId,
      .XLA_FFI_DeviceOrdinal_Get = GetDeviceOrdinal,
      .XLA_FFI_InvokeContext_FindExtension = FindExtension,
      .XLA_FFI_CustomOptions_Get = GetCustomOptions,
  };
  return &api;
}

XLA_FFI_CallFrame NewFrame(XLA_FFI_ExecutionStage stage) {
  XLA_FFI_CallFrame frame = {};
  frame.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE;
  frame.api = FfiApi();
  frame.stage = stage;
  frame.args.struct_size = sizeof(frame.args);
  frame.rets.struct_size = sizeof(frame.rets);
  frame.attrs.struct_size = sizeof(frame.attrs);
  return frame;
}

absl::Status CallStage(XLA_FFI_Handler* handler, XLA_FFI_CallFrame* frame) {
  frame->future = nullptr;
  XLA_FFI_Error* error = nullptr;
  try {
    error = handler(frame);
  } catch (const std::exception& e) {
    return absl::InternalError(StrCat("an exception of a handler: ", e.what()));
  } catch (...) {
    return absl::InternalError("an exception of a handler");
  }
  const std::unique_ptr<XLA_FFI_Future> future(frame->future);
  if (error != nullptr) return TakeFfiError(error);
  return future == nullptr ? absl::OkStatus() : Await(*future);
}

absl::Status FfiState::Set(int64_t type_id, void* state) {
  if (state == nullptr) return absl::InvalidArgumentError("the state is null");
  if (state_ != nullptr) return absl::FailedPreconditionError("the stage has a state");
  type_id_ = type_id;
  state_ = state;
  return absl::OkStatus();
}

absl::StatusOr<void*> FfiState::Get(int64_t type_id) const {
  if (state_ == nullptr) return absl::NotFoundError("the stage has no state");
  if (type_id != type_id_) {
    return absl::InvalidArgumentError(StrCat("the state is of the type ", type_id_, ", not ", type_id));
  }
  return state_;
}

void FfiState::Reset() {
  if (state_ == nullptr) return;
  if (void (*const deleter)(void*) = FfiDeleterOf(type_id_); deleter != nullptr) deleter(state_);
  state_ = nullptr;
}

}  // namespace hlokit::pjrt
