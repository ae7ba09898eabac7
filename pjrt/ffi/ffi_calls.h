// SPDX-License-Identifier: Apache-2.0
// What a handler of a typed custom call is called with beside its buffers: the call's states, the run, the device.
#ifndef HLOKIT_PJRT_FFI_FFI_CALLS_H_
#define HLOKIT_PJRT_FFI_FFI_CALLS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "pjrt/c_api/xla_ffi.h"
#include "pjrt/ffi/ffi_handlers.h"

namespace hlokit::pjrt {

// An object that a handler of a stage has made; destroyed by the deleter of its type.
class FfiState {
 public:
  FfiState() = default;
  FfiState(const FfiState&) = delete;
  FfiState& operator=(const FfiState&) = delete;
  ~FfiState() { Reset(); }

  absl::Status Set(int64_t type_id, void* state);
  absl::StatusOr<void*> Get(int64_t type_id) const;
  void Reset();

 private:
  int64_t type_id_ = 0;
  void* state_ = nullptr;
};

// A call of a loaded program whose handlers have stages beside execution.
struct FfiCall {
  explicit FfiCall(const XLA_FFI_Handler_Bundle& handlers) : bundle(handlers) {}

  const XLA_FFI_Handler_Bundle bundle;
  FfiState instantiated;

  // Of the runs of one device.
  struct OfDevice {
    int64_t run = 0;  // of the states; 0: none
    FfiState prepared, initialized;
  };
  std::mutex mutex;
  std::map<int64_t, OfDevice> devices;
};

// Returns the frame of a call, without arguments.
XLA_FFI_CallFrame NewFrame(XLA_FFI_ExecutionStage stage);
// Calls a handler and waits for its end, also if it is asynchronous.
absl::Status CallStage(XLA_FFI_Handler* handler, XLA_FFI_CallFrame* frame);
// The functions that a handler may call.
const XLA_FFI_Api* FfiApi();

}  // namespace hlokit::pjrt

// Of one call of a handler.
struct XLA_FFI_ExecutionContext {
  std::shared_ptr<hlokit::pjrt::FfiUserData> user_data;
  hlokit::pjrt::FfiCall* call = nullptr;                 // null: it has no states
  hlokit::pjrt::FfiCall::OfDevice* of_device = nullptr;  // null: while it is instantiated
  int64_t run_id = 0;
  int64_t device = 0;
};

#endif  // HLOKIT_PJRT_FFI_FFI_CALLS_H_
