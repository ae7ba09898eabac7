// SPDX-License-Identifier: Apache-2.0
// Typed custom calls: handlers that callers register, and the data that they give them with a run.
#ifndef HLOKIT_PJRT_FFI_FFI_HANDLERS_H_
#define HLOKIT_PJRT_FFI_FFI_HANDLERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>

#include "absl/status/status.h"
#include "interp/custom_calls/custom_calls.h"
#include "ir/graph/module.h"
#include "pjrt/c_api/ffi_args.h"

namespace hlokit::pjrt {

// Data of callers, by type id. The pointers are the caller's.
struct FfiUserData {
  std::mutex mutex;
  std::map<int64_t, void*> data;
};

// Returns true if the program has typed custom calls.
bool HasTypedCalls(const Module& module);

// Returns the functions of a platform: handlers registered for it, for "cpu" or for "host". They live as long as the
// process, and may be read with the mutex held shared.
const interp::CustomCallRegistry* FfiHandlersOf(std::string_view platform);
std::shared_mutex& FfiHandlersMutex();

// Sets the data for handlers that this thread calls; null: none.
void SetFfiUserData(std::shared_ptr<FfiUserData> data);

// ---- Functions of the extension ----

absl::Status FfiTypeRegister(PJRT_FFI_Type_Register_Args* args);
absl::Status FfiUserDataAdd(PJRT_FFI_UserData_Add_Args* args);
absl::Status FfiRegisterHandler(PJRT_FFI_Register_Handler_Args* args);

}  // namespace hlokit::pjrt

struct PJRT_ExecuteContext {
  std::shared_ptr<hlokit::pjrt::FfiUserData> user_data;
};

#endif  // HLOKIT_PJRT_FFI_FFI_HANDLERS_H_
