// SPDX-License-Identifier: Apache-2.0
// The table of functions.
#include "pjrt/c_api/api.h"

#include <cstddef>

#include "parser/bytecode/reader.h"
#include "pjrt/execution/extensions.h"
#include "pjrt/trace/recorder.h"
#include "pjrt/values/entry.h"
#include "pjrt/values/functions.h"
#include "pjrt/values/named_values.h"

namespace hlokit::pjrt {

// The sizes are those of XLA's interface.
#define PJRT_FUNCTION(kind, name, size, last_field, handle)                                                  \
  static_assert(offsetof(PJRT_##name##_Args, last_field) + sizeof(PJRT_##name##_Args::last_field) == (size), \
                "the size of PJRT_" #name "_Args");
#include "pjrt/c_api/functions.def"
static_assert(sizeof(PJRT_Api) == 1144);
static_assert(offsetof(PJRT_Api, PJRT_Error_Destroy) == 40);
static_assert(sizeof(PJRT_NamedValue) == 56);
static_assert(sizeof(PJRT_Program) == 48);
static_assert(sizeof(PJRT_ExecuteOptions) == 144);
static_assert(sizeof(PJRT_Buffer_MemoryLayout) == 80 && offsetof(PJRT_Buffer_MemoryLayout, type) == 72);
static_assert(offsetof(PJRT_ShapeSpec, element_type) + sizeof(PJRT_Buffer_Type) == 36);

absl::Status Plugin_Initialize(PJRT_Plugin_Initialize_Args*) { return absl::OkStatus(); }

absl::Status Plugin_Attributes(PJRT_Plugin_Attributes_Args* args) {
  static const NamedValues* const attributes = [] {
    auto* const values = new NamedValues();
    constexpr int64_t kXlaVersion = 2;
    values->Add("xla_version", kXlaVersion);
    values->Add("stablehlo_current_version",
                std::vector<int64_t>{bytecode::kNewestStablehlo.major, bytecode::kNewestStablehlo.minor, 0});
    values->Add("stablehlo_minimum_version", std::vector<int64_t>{0, 9, 0});
    return values;
  }();
  args->attributes = attributes->data();
  args->num_attributes = attributes->size();
  return absl::OkStatus();
}

namespace {

// One C function for each row.
#define HLOKIT_ENTRY_kVoid(name, handle)
#define HLOKIT_ENTRY_kReal(name, handle)                                                       \
  PJRT_Error* name##_Entry(PJRT_##name##_Args* args) {                                         \
    return CallEntry("PJRT_" #name, args, &PJRT_##name##_Args::handle, &::hlokit::pjrt::name); \
  }
#define HLOKIT_ENTRY_kStub(name, handle)                                                      \
  PJRT_Error* name##_Entry(PJRT_##name##_Args*) {                                             \
    return NewError(absl::UnimplementedError("PJRT_" #name " is not implemented by hlokit")); \
  }
#define PJRT_FUNCTION(kind, name, size, last_field, handle) HLOKIT_ENTRY_##kind(name, handle)
#include "pjrt/c_api/functions.def"

void Error_Destroy_Entry(PJRT_Error_Destroy_Args* args) {
  if (args != nullptr && args->error != nullptr) args->error->functions->destroy(args->error);
}

void Error_Message_Entry(PJRT_Error_Message_Args* args) {
  if (args == nullptr || args->error == nullptr) return;
  args->error->functions->message(args->error, &args->message, &args->message_size);
}

// The functions of the table where the environment asks for a record.
#define PJRT_FUNCTION(kind, name, size, last_field, handle)             \
  HLOKIT_PJRT_RESULT_##kind name##_Recorded(PJRT_##name##_Args* args) { \
    return CallRecorded("PJRT_" #name, args, name##_Entry);             \
  }
#include "pjrt/c_api/functions.def"

PJRT_Api MakeApi() {
  const bool recorded = Recorder::Get() != nullptr;
  PJRT_Api api = {};
  api.struct_size = sizeof(PJRT_Api);
  api.extension_start = Extensions();
  api.pjrt_api_version.struct_size = sizeof(PJRT_Api_Version);
  api.pjrt_api_version.major_version = PJRT_API_MAJOR;
  api.pjrt_api_version.minor_version = PJRT_API_MINOR;
#define PJRT_FUNCTION(kind, name, size, last_field, handle) api.PJRT_##name = recorded ? name##_Recorded : name##_Entry;
#include "pjrt/c_api/functions.def"
  return api;
}

}  // namespace
}  // namespace hlokit::pjrt

const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api api = hlokit::pjrt::MakeApi();
  return &api;
}
