// SPDX-License-Identifier: Apache-2.0
// The extension for typed custom calls, version 3.
#ifndef HLOKIT_PJRT_C_API_FFI_ARGS_H_
#define HLOKIT_PJRT_C_API_FFI_ARGS_H_

#include <cstddef>
#include <cstdint>

#include "pjrt/c_api/types.h"

extern "C" {

struct PJRT_FFI_Type_Info {
  void (*deleter)(void* object);
  void (*serialize)();
  void (*deserialize)();
};

struct PJRT_FFI_Type_Register_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* type_name;
  size_t type_name_size;
  int64_t type_id;  // 0: out
  PJRT_FFI_Type_Info* type_info;
};

struct PJRT_FFI_UserData {
  int64_t type_id;
  void* data;  // the caller's
};

struct PJRT_FFI_UserData_Add_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_ExecuteContext* context;
  PJRT_FFI_UserData user_data;
};

struct PJRT_FFI_Register_Handler_Args {
  size_t struct_size;
  const char* target_name;
  size_t target_name_size;
  void* handler;  // XLA_FFI_Handler
  const char* platform_name;
  size_t platform_name_size;
  uint32_t traits;
};

struct PJRT_FFI_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*type_register)(PJRT_FFI_Type_Register_Args* args);
  PJRT_Error* (*user_data_add)(PJRT_FFI_UserData_Add_Args* args);
  PJRT_Error* (*register_handler)(PJRT_FFI_Register_Handler_Args* args);
};

}  // extern "C"

static_assert(sizeof(PJRT_FFI_Type_Register_Args) == 48 && sizeof(PJRT_FFI_UserData_Add_Args) == 40);
static_assert(offsetof(PJRT_FFI_Register_Handler_Args, traits) == 48 && sizeof(PJRT_FFI_Extension) == 48);

#endif  // HLOKIT_PJRT_C_API_FFI_ARGS_H_
