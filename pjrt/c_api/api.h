// SPDX-License-Identifier: Apache-2.0
// The table of functions of a PJRT plugin, version 0.114, and the one symbol that it exports.
#ifndef HLOKIT_PJRT_C_API_API_H_
#define HLOKIT_PJRT_C_API_API_H_

#include "pjrt/c_api/buffer_args.h"
#include "pjrt/c_api/client_args.h"
#include "pjrt/c_api/device_args.h"
#include "pjrt/c_api/event_args.h"
#include "pjrt/c_api/executable_args.h"

#define PJRT_API_MAJOR 0
#define PJRT_API_MINOR 114

extern "C" {

struct PJRT_Api_Version {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  int major_version;
  int minor_version;
};

// Types of the functions, by kind.
#define HLOKIT_PJRT_RESULT_kVoid void
#define HLOKIT_PJRT_RESULT_kReal PJRT_Error*
#define HLOKIT_PJRT_RESULT_kStub PJRT_Error*

struct PJRT_Api {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Api_Version pjrt_api_version;
#define PJRT_FUNCTION(kind, name, size, last_field, handle) \
  HLOKIT_PJRT_RESULT_##kind (*PJRT_##name)(PJRT_##name##_Args * args);
#include "pjrt/c_api/functions.def"
};

// Returns the table, which is constant. The only symbol of the library.
__attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi();

}  // extern "C"

#endif  // HLOKIT_PJRT_C_API_API_H_
