// SPDX-License-Identifier: Apache-2.0
#include "pjrt/values/error.h"

#include "pjrt/values/arguments.h"
#include "pjrt/values/functions.h"

namespace hlokit::pjrt {
namespace {

void DestroyError(PJRT_Error* error) { delete error; }

void MessageOfError(const PJRT_Error* error, const char** message, size_t* message_size) {
  *message = error->message.c_str();
  *message_size = error->message.size();
}

PJRT_Error_Code CodeOfError(const PJRT_Error* error) { return error->code; }

// Errors have no payloads.
void ForEachPayload(const PJRT_Error*, PJRT_Error_PayloadVisitor, void*) {}

constexpr PJRT_Error_FunctionTable kErrorFunctions = {
    .struct_size = sizeof(PJRT_Error_FunctionTable),
    .instance_size = sizeof(PJRT_Error),
    .extension_start = nullptr,
    .destroy = DestroyError,
    .message = MessageOfError,
    .get_code = CodeOfError,
    .for_each_payload = ForEachPayload,
};

}  // namespace

PJRT_Error* NewError(const absl::Status& status) {
  if (status.ok()) return nullptr;
  return new PJRT_Error{&kErrorFunctions, static_cast<PJRT_Error_Code>(status.code()), std::string(status.message())};
}

absl::Status StatusOf(PJRT_Error_Code code, const char* message, size_t message_size) {
  if (code == PJRT_Error_Code_OK) return absl::OkStatus();
  const bool known = code > PJRT_Error_Code_OK && code <= PJRT_Error_Code_UNAUTHENTICATED;
  return absl::Status(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
                      std::string(TextOf(message, message_size)));
}

absl::Status Error_GetCode(PJRT_Error_GetCode_Args* args) {
  args->code = args->error->code;
  return absl::OkStatus();
}

absl::Status Error_ForEachPayload(PJRT_Error_ForEachPayload_Args*) { return absl::OkStatus(); }

}  // namespace hlokit::pjrt
