// SPDX-License-Identifier: Apache-2.0
// The profiler of a plugin, version 1: an interface of its own, with its own errors, that an extension of the table
// points to. `out`: written by the plugin.
#ifndef HLOKIT_PJRT_C_API_PROFILER_ARGS_H_
#define HLOKIT_PJRT_C_API_PROFILER_ARGS_H_

#include <cstddef>
#include <cstdint>

#include "pjrt/c_api/types.h"

extern "C" {

struct PLUGIN_Profiler;
struct PLUGIN_Profiler_Error;

struct PLUGIN_Profiler_Error_Destroy_Args {
  size_t struct_size;
  void* priv;
  PLUGIN_Profiler_Error* error;
};

struct PLUGIN_Profiler_Error_Message_Args {
  size_t struct_size;
  void* priv;
  const PLUGIN_Profiler_Error* error;
  const char* message;  // out
  size_t message_size;  // out
};

struct PLUGIN_Profiler_Error_GetCode_Args {
  size_t struct_size;
  void* priv;
  const PLUGIN_Profiler_Error* error;
  int code;  // out
};

struct PLUGIN_Profiler_Create_Args {
  size_t struct_size;
  const char* options;  // a serialized ProfileOptions
  size_t options_size;
  PLUGIN_Profiler* profiler;  // out
};

struct PLUGIN_Profiler_Destroy_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
};

struct PLUGIN_Profiler_Start_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
};

struct PLUGIN_Profiler_Stop_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
};

// Called without a buffer: the profiler gives its own, which lives as long as it does or until it starts again. Callers
// of old take only the size from that, and call again with a buffer of theirs.
struct PLUGIN_Profiler_CollectData_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
  uint8_t* buffer;              // in and out
  size_t buffer_size_in_bytes;  // out
};

struct PLUGIN_Profiler_Api {
  size_t struct_size;
  void* priv;
  void (*error_destroy)(PLUGIN_Profiler_Error_Destroy_Args* args);
  void (*error_message)(PLUGIN_Profiler_Error_Message_Args* args);
  PLUGIN_Profiler_Error* (*error_get_code)(PLUGIN_Profiler_Error_GetCode_Args* args);
  PLUGIN_Profiler_Error* (*create)(PLUGIN_Profiler_Create_Args* args);
  PLUGIN_Profiler_Error* (*destroy)(PLUGIN_Profiler_Destroy_Args* args);
  PLUGIN_Profiler_Error* (*start)(PLUGIN_Profiler_Start_Args* args);
  PLUGIN_Profiler_Error* (*stop)(PLUGIN_Profiler_Stop_Args* args);
  PLUGIN_Profiler_Error* (*collect_data)(PLUGIN_Profiler_CollectData_Args* args);
};

struct PJRT_Profiler_Extension {
  PJRT_Extension_Base base;
  PLUGIN_Profiler_Api* profiler_api;
  int64_t traceme_context_id;  // of arguments that carry the extension
};

}  // extern "C"

#endif  // HLOKIT_PJRT_C_API_PROFILER_ARGS_H_
