// SPDX-License-Identifier: Apache-2.0
// The binary interface of PJRT plugins, version 0.114: types that the arguments of its functions use. Names, order and
// sizes are those of XLA's interface, so that programs compiled against its header call this library; functions.def
// checks the size of each struct.
//
// Rules: each struct of arguments begins with its size as the caller knows it, up to the end of its last field without
// padding, and a chain of extensions. Structs grow at the end, so a field is read or written only if the caller's size
// reaches it (arguments.h). Output fields hold garbage before the call. Handles are owned by the caller unless their
// function says otherwise.
#ifndef HLOKIT_PJRT_C_API_TYPES_H_
#define HLOKIT_PJRT_C_API_TYPES_H_

#include <cstddef>
#include <cstdint>

extern "C" {

// Objects behind handles.
struct PJRT_AsyncHostToDeviceTransferManager;
struct PJRT_AsyncTrackingEvent;
struct PJRT_Buffer;
struct PJRT_Client;
struct PJRT_CopyToDeviceStream;
struct PJRT_Device;
struct PJRT_Device_Attributes;
struct PJRT_DeviceAssignmentSerialized;
struct PJRT_DeviceDescription;
struct PJRT_Error;
struct PJRT_Event;
struct PJRT_Executable;
struct PJRT_ExecuteContext;
struct PJRT_FulfillAliasBufferCallback;
struct PJRT_LoadedExecutable;
struct PJRT_Memory;
struct PJRT_MultiSlice_Config;
struct PJRT_SerializedCompileOptions;
struct PJRT_SerializedExecutable;
struct PJRT_SerializedTopology;
struct PJRT_TopologyDescription;

enum PJRT_Extension_Type : int {
  PJRT_Extension_Type_Profiler = 1,
  PJRT_Extension_Type_Custom_Partitioner = 2,
  PJRT_Extension_Type_Layouts = 4,
  PJRT_Extension_Type_FFI = 5,
  PJRT_Extension_Type_MemoryDescriptions = 6,
  PJRT_Extension_Type_CrossHostTransfers = 12,
  PJRT_Extension_Type_Callback = 14,
  PJRT_Extension_Type_Shardings = 19,
};

struct PJRT_Extension_Base {
  size_t struct_size;
  PJRT_Extension_Type type;
  PJRT_Extension_Base* next;
};

// The numbers of absl::StatusCode.
enum PJRT_Error_Code : int {
  PJRT_Error_Code_OK = 0,
  PJRT_Error_Code_UNAUTHENTICATED = 16,
};

using PJRT_Error_PayloadVisitor = void (*)(const char* key, size_t key_size, const char* value, size_t value_size,
                                           void* user_arg);

// The first word of an error points to one, so that code without the table of functions can use the error.
struct PJRT_Error_FunctionTable {
  size_t struct_size;
  size_t instance_size;
  PJRT_Extension_Base* extension_start;
  void (*destroy)(PJRT_Error* error);
  void (*message)(const PJRT_Error* error, const char** message, size_t* message_size);
  PJRT_Error_Code (*get_code)(const PJRT_Error* error);
  void (*for_each_payload)(const PJRT_Error* error, PJRT_Error_PayloadVisitor visitor, void* user_arg);
};

// The first word of a memory points to one: values that the caller attaches under keys of its own.
struct PJRT_Memory_FunctionTable {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  size_t instance_struct_size;
  void* (*get_user_data)(PJRT_Memory* memory, void* key);
  void (*set_user_data)(PJRT_Memory* memory, void* key, void* data, void (*destructor)(void* data));
};

enum PJRT_NamedValue_Type : int {
  PJRT_NamedValue_kString = 0,
  PJRT_NamedValue_kInt64 = 1,
  PJRT_NamedValue_kInt64List = 2,
  PJRT_NamedValue_kFloat = 3,
  PJRT_NamedValue_kBool = 4,
};

struct PJRT_NamedValue {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* name;
  size_t name_size;
  PJRT_NamedValue_Type type;
  union {
    const char* string_value;
    int64_t int64_value;
    const int64_t* int64_array_value;
    float float_value;
    bool bool_value;
  };
  size_t value_size;  // characters or elements; 1 for others
};

// Errors that the plugin makes for a caller's callback.
using PJRT_CallbackError = PJRT_Error* (*)(PJRT_Error_Code code, const char* message, size_t message_size);

// Owns `error`, which may be null.
using PJRT_Event_OnReadyCallback = void (*)(PJRT_Error* error, void* user_arg);

// Keys and values that the processes of one program share. An error is made by `callback_error`.
struct PJRT_KeyValueGetCallback_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* key;
  size_t key_size;
  int timeout_in_ms;
  PJRT_CallbackError* callback_error;
  void* user_arg;
  char* value;                         // out
  size_t value_size;                   // out
  void (*value_deleter)(char* value);  // out
};
struct PJRT_KeyValuePutCallback_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* key;
  size_t key_size;
  const char* value;
  size_t value_size;
  PJRT_CallbackError* callback_error;
  void* user_arg;
};
using PJRT_KeyValueGetCallback = PJRT_Error* (*)(PJRT_KeyValueGetCallback_Args* args);
using PJRT_KeyValueTryGetCallback = PJRT_Error* (*)(void* args);  // not called
using PJRT_KeyValuePutCallback = PJRT_Error* (*)(PJRT_KeyValuePutCallback_Args* args);

struct PJRT_Program {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  char* code;
  size_t code_size;
  const char* format;  // "mlir": StableHLO; "hlo": a serialized HloModuleProto
  size_t format_size;
};

// Types of elements; buffer_type.h converts.
enum PJRT_Buffer_Type : int {
  PJRT_Buffer_Type_INVALID = 0,
  PJRT_Buffer_Type_TOKEN = 23,
  PJRT_Buffer_Type_LAST = 33,
};

enum PJRT_HostBufferSemantics : int {
  PJRT_HostBufferSemantics_kImmutableOnlyDuringCall = 0,
  PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes = 1,
  PJRT_HostBufferSemantics_kImmutableZeroCopy = 2,
  PJRT_HostBufferSemantics_kMutableZeroCopy = 3,
};

struct PJRT_Buffer_MemoryLayout_Tiled {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const int64_t* minor_to_major;
  size_t minor_to_major_size;
  const int64_t* tile_dims;  // of all tiles, one after the other
  const size_t* tile_dim_sizes;
  size_t num_tiles;
};

struct PJRT_Buffer_MemoryLayout_Strides {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const int64_t* byte_strides;
  size_t num_byte_strides;
};

enum PJRT_Buffer_MemoryLayout_Type : int {
  PJRT_Buffer_MemoryLayout_Type_Tiled = 0,
  PJRT_Buffer_MemoryLayout_Type_Strides = 1,
};

struct PJRT_Buffer_MemoryLayout {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  union {
    PJRT_Buffer_MemoryLayout_Tiled tiled;
    PJRT_Buffer_MemoryLayout_Strides strides;
  };
  PJRT_Buffer_MemoryLayout_Type type;
};

struct PJRT_ShapeSpec {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Buffer_Type element_type;
};

struct PJRT_Chunk {
  void* data;
  size_t size;
  void (*deleter)(void* data, void* deleter_arg);
  void* deleter_arg;
};

// Return an error made by `callback_error`, or null.
using PJRT_SendCallback = PJRT_Error* (*)(PJRT_Chunk* chunk, PJRT_CallbackError* callback_error,
                                          size_t total_size_in_bytes, bool done, void* user_arg);
using PJRT_RecvCallback = void (*)(PJRT_CopyToDeviceStream* stream, void* user_arg);

struct PJRT_SendCallbackInfo {
  int64_t channel_id;
  void* user_arg;
  PJRT_SendCallback send_callback;
};

struct PJRT_RecvCallbackInfo {
  int64_t channel_id;
  void* user_arg;
  PJRT_RecvCallback recv_callback;
};

struct PJRT_HloOutputCallbackInfo {
  void* user_arg;
  void (*callback)(int replica, int partition, const void* data, const int64_t* dims, size_t num_dims,
                   PJRT_Buffer_Type type, int64_t operand_index, void* user_arg);
  int64_t callback_id;
  size_t num_operands;
};

struct PJRT_ExecuteOptions {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_SendCallbackInfo** send_callbacks;  // [device][send]
  PJRT_RecvCallbackInfo** recv_callbacks;  // [device][receive]
  size_t num_send_ops;
  size_t num_recv_ops;
  int launch_id;
  const int64_t* non_donatable_input_indices;
  size_t num_non_donatable_input_indices;
  PJRT_ExecuteContext* context;
  const char* call_location;  // "file:line" of the caller's program; may be null
  size_t num_tasks;
  int* task_ids;
  int64_t* incarnation_ids;
  PJRT_MultiSlice_Config* multi_slice_config;
  bool use_major_to_minor_data_layout_for_callbacks;
  PJRT_HloOutputCallbackInfo* hlo_output_callbacks;
  size_t num_hlo_output_callbacks;
};

struct PJRT_LoadOptions {
  size_t struct_size;
  const int32_t* computation_origin;
  size_t computation_origin_size;
  PJRT_MultiSlice_Config* multi_slice_config;
};

struct PJRT_LogicalDeviceIds {
  int replica;
  int partition;
};

struct PJRT_ProcessInfo {
  size_t struct_size;
  int task_id;
  uint64_t incarnation_id;
  int state;
  int error_code;
  const char* error_message;
  size_t error_message_size;
};

}  // extern "C"

#endif  // HLOKIT_PJRT_C_API_TYPES_H_
