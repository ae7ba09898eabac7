// SPDX-License-Identifier: Apache-2.0
// Typed custom calls: handlers that callers register, and the data that they give them with a run.
//
// A handler has up to four stages. Each call of a program is instantiated once, when the program is loaded; each run
// prepares and initializes it on each device before it executes it for the first time.
#ifndef HLOKIT_PJRT_FFI_FFI_HANDLERS_H_
#define HLOKIT_PJRT_FFI_FFI_HANDLERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "interp/custom_calls/custom_calls.h"
#include "ir/graph/module.h"
#include "pjrt/c_api/ffi_args.h"
#include "pjrt/c_api/xla_ffi.h"

namespace hlokit::pjrt {

struct FfiCall;

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

// Instantiates the calls of a program whose handlers have stages beside execution, and marks them in the module, which
// is then run with those that are returned alive. Returns the error of a handler, and NOT_FOUND for a call without one.
absl::StatusOr<std::vector<std::shared_ptr<FfiCall>>> InstantiateFfiCalls(std::string_view platform, Module* module);

// What handlers that this thread calls learn of the run.
struct FfiRun {
  std::shared_ptr<FfiUserData> user_data;  // null: none
  int64_t id = 0;
  std::vector<int64_t> devices;  // ids, by replica and then partition of the run
};
void SetFfiRun(FfiRun run);

// Registers the handlers of a target. Registering the same ones again has no effect; others are an error.
absl::Status RegisterFfiHandler(std::string_view target, std::string_view platform,
                                const XLA_FFI_Handler_Bundle& bundle);
// Registers a type of data and states. `*id`, if it is not 0, is to be its id; otherwise it is set.
absl::Status RegisterFfiType(std::string_view name, void (*deleter)(void* object), int64_t* id);
// Returns the function that destroys objects of a type; null if there is none.
void (*FfiDeleterOf(int64_t type_id))(void* object);

// ---- Functions of the extension ----

absl::Status FfiTypeRegister(PJRT_FFI_Type_Register_Args* args);
absl::Status FfiUserDataAdd(PJRT_FFI_UserData_Add_Args* args);
absl::Status FfiRegisterHandler(PJRT_FFI_Register_Handler_Args* args);

}  // namespace hlokit::pjrt

struct PJRT_ExecuteContext {
  std::shared_ptr<hlokit::pjrt::FfiUserData> user_data;
};

#endif  // HLOKIT_PJRT_FFI_FFI_HANDLERS_H_
