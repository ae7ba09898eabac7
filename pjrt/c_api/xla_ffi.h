/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of typed custom calls, XLA's FFI of version 0.5, in C: what a handler of a custom call is given, and the
   functions that it may call. Every struct begins with its size; one of a newer version has more fields. */
#ifndef HLOKIT_PJRT_C_API_XLA_FFI_H_
#define HLOKIT_PJRT_C_API_XLA_FFI_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define XLA_FFI_API_MAJOR 0
#define XLA_FFI_API_MINOR 5

typedef struct XLA_FFI_Error XLA_FFI_Error;
typedef struct XLA_FFI_ExecutionContext XLA_FFI_ExecutionContext;
typedef struct XLA_FFI_Future XLA_FFI_Future;

typedef enum { XLA_FFI_Extension_Metadata = 1 } XLA_FFI_Extension_Type;

typedef struct XLA_FFI_Extension_Base {
  size_t struct_size;
  XLA_FFI_Extension_Type type;
  struct XLA_FFI_Extension_Base* next;
} XLA_FFI_Extension_Base;

typedef struct XLA_FFI_Api_Version {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  int major_version;
  int minor_version;
} XLA_FFI_Api_Version;

typedef struct XLA_FFI_TypeId {
  int64_t type_id; /* 0: unknown */
} XLA_FFI_TypeId;

typedef struct XLA_FFI_TypeInfo {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  void (*deleter)(void* object);
} XLA_FFI_TypeInfo;

typedef struct XLA_FFI_ByteSpan {
  const char* ptr;
  size_t len;
} XLA_FFI_ByteSpan;

/* ---- values ---- */

/* XLA's PrimitiveType. */
typedef int XLA_FFI_DataType;

/* Elements are dense, in the order of the layout that the call states, or else row-major. */
typedef struct XLA_FFI_Buffer {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_DataType dtype;
  void* data;
  int64_t rank;
  int64_t* dims;
} XLA_FFI_Buffer;

typedef enum { XLA_FFI_ArgType_BUFFER = 1 } XLA_FFI_ArgType;
typedef enum { XLA_FFI_RetType_BUFFER = 1 } XLA_FFI_RetType;
typedef enum {
  XLA_FFI_AttrType_ARRAY = 1,      /* XLA_FFI_Array */
  XLA_FFI_AttrType_DICTIONARY = 2, /* XLA_FFI_Attrs */
  XLA_FFI_AttrType_SCALAR = 3,     /* XLA_FFI_Scalar */
  XLA_FFI_AttrType_STRING = 4      /* XLA_FFI_ByteSpan */
} XLA_FFI_AttrType;

typedef struct XLA_FFI_Scalar {
  XLA_FFI_DataType dtype;
  void* value;
} XLA_FFI_Scalar;

typedef struct XLA_FFI_Array {
  XLA_FFI_DataType dtype;
  size_t size;
  void* data;
} XLA_FFI_Array;

typedef struct XLA_FFI_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  int64_t size;
  XLA_FFI_ArgType* types;
  void** args;
} XLA_FFI_Args;

typedef struct XLA_FFI_Rets {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  int64_t size;
  XLA_FFI_RetType* types;
  void** rets;
} XLA_FFI_Rets;

/* Sorted by name. */
typedef struct XLA_FFI_Attrs {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  int64_t size;
  XLA_FFI_AttrType* types;
  XLA_FFI_ByteSpan** names;
  void** attrs;
} XLA_FFI_Attrs;

/* ---- calls ---- */

typedef enum {
  XLA_FFI_ExecutionStage_INSTANTIATE = 0,
  XLA_FFI_ExecutionStage_PREPARE = 1,
  XLA_FFI_ExecutionStage_INITIALIZE = 2,
  XLA_FFI_ExecutionStage_EXECUTE = 3
} XLA_FFI_ExecutionStage;

struct XLA_FFI_Api;

typedef struct XLA_FFI_CallFrame {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  const struct XLA_FFI_Api* api;
  XLA_FFI_ExecutionContext* ctx;
  XLA_FFI_ExecutionStage stage;
  XLA_FFI_Args args;
  XLA_FFI_Rets rets;
  XLA_FFI_Attrs attrs;
  XLA_FFI_Future* future; /* out */
} XLA_FFI_CallFrame;

/* Handlers require this size. It does not count `future`. */
enum { XLA_FFI_CallFrame_STRUCT_SIZE = offsetof(XLA_FFI_CallFrame, future) };

/* Returns null, or an error that the caller destroys. A frame with the extension of metadata is not a call: the handler
   writes what it is. */
typedef XLA_FFI_Error* XLA_FFI_Handler(XLA_FFI_CallFrame* call_frame);

/* A handler for each stage; null: the stage does nothing. */
typedef struct XLA_FFI_Handler_Bundle {
  XLA_FFI_Handler* instantiate;
  XLA_FFI_Handler* prepare;
  XLA_FFI_Handler* initialize;
  XLA_FFI_Handler* execute; /* not null */
  XLA_FFI_Handler* record;
} XLA_FFI_Handler_Bundle;

typedef struct XLA_FFI_Metadata {
  size_t struct_size;
  XLA_FFI_Api_Version api_version;
  uint32_t traits;
  XLA_FFI_TypeId state_type_id;
} XLA_FFI_Metadata;

typedef struct XLA_FFI_Metadata_Extension {
  XLA_FFI_Extension_Base extension_base;
  XLA_FFI_Metadata* metadata;
} XLA_FFI_Metadata_Extension;

/* ---- functions ---- */

typedef int XLA_FFI_Error_Code; /* those of absl::StatusCode */

typedef struct XLA_FFI_Error_Create_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  const char* message;
  XLA_FFI_Error_Code errc;
} XLA_FFI_Error_Create_Args;

/* GetMessage before 0.5. */
typedef struct XLA_FFI_Error_GetDetails_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_Error* error;
  const char* message;     /* out */
  XLA_FFI_Error_Code errc; /* out, since 0.5 */
} XLA_FFI_Error_GetDetails_Args;

typedef struct XLA_FFI_Error_Destroy_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_Error* error;
} XLA_FFI_Error_Destroy_Args;

typedef struct XLA_FFI_ExecutionContext_Get_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  XLA_FFI_TypeId* type_id;
  void* data; /* out */
} XLA_FFI_ExecutionContext_Get_Args;

typedef struct XLA_FFI_InvokeContext_FindExtension_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  int64_t extension_type;
  const void* extension; /* out; null: none */
} XLA_FFI_InvokeContext_FindExtension_Args;

typedef struct XLA_FFI_CustomOptions_Get_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  const XLA_FFI_Attrs* attrs; /* out */
} XLA_FFI_CustomOptions_Get_Args;

typedef struct XLA_FFI_Handler_Register_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ByteSpan name;
  XLA_FFI_ByteSpan platform;
  XLA_FFI_Handler_Bundle bundle;
  uint32_t traits;
} XLA_FFI_Handler_Register_Args;

typedef struct XLA_FFI_Type_Register_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ByteSpan name;
  XLA_FFI_TypeId* type_id; /* in and out */
  const XLA_FFI_TypeInfo* type_info;
} XLA_FFI_Type_Register_Args;

/* The state of a call that its handler of `stage` has made; the runtime destroys it. */
typedef struct XLA_FFI_State_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  XLA_FFI_ExecutionStage stage;
  XLA_FFI_TypeId* type_id;
  void* state; /* of State_Get: out */
} XLA_FFI_State_Args;

typedef struct XLA_FFI_ThreadPool_Schedule_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  void (*task)(void* data);
  void* data;
} XLA_FFI_ThreadPool_Schedule_Args;

typedef struct XLA_FFI_ThreadPool_NumThreads_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  int64_t* num_threads; /* out */
} XLA_FFI_ThreadPool_NumThreads_Args;

typedef struct XLA_FFI_Future_Create_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_Future* future; /* out */
} XLA_FFI_Future_Create_Args;

typedef struct XLA_FFI_Future_SetAvailable_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_Future* future;
} XLA_FFI_Future_SetAvailable_Args;

typedef struct XLA_FFI_Future_SetError_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_Future* future;
  XLA_FFI_Error* error; /* the runtime's from now on */
} XLA_FFI_Future_SetError_Args;

typedef struct XLA_FFI_RunId_Get_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  int64_t run_id; /* out */
} XLA_FFI_RunId_Get_Args;

typedef struct XLA_FFI_DeviceOrdinal_Get_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  int32_t device_ordinal; /* out */
} XLA_FFI_DeviceOrdinal_Get_Args;

/* Functions that are not implemented, and take any arguments, return UNIMPLEMENTED. */
typedef XLA_FFI_Error* XLA_FFI_Unimplemented(void* args);

typedef struct XLA_FFI_Api {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_Api_Version api_version;
  const void* internal_api; /* null */
  XLA_FFI_Error* (*XLA_FFI_Error_Create)(XLA_FFI_Error_Create_Args* args);
  void (*XLA_FFI_Error_GetDetails)(XLA_FFI_Error_GetDetails_Args* args);
  void (*XLA_FFI_Error_Destroy)(XLA_FFI_Error_Destroy_Args* args);
  XLA_FFI_Error* (*XLA_FFI_Handler_Register)(XLA_FFI_Handler_Register_Args* args);
  XLA_FFI_Unimplemented* XLA_FFI_Stream_Get;
  XLA_FFI_Error* (*XLA_FFI_Type_Register)(XLA_FFI_Type_Register_Args* args);
  XLA_FFI_Error* (*XLA_FFI_ExecutionContext_Get)(XLA_FFI_ExecutionContext_Get_Args* args);
  XLA_FFI_Error* (*XLA_FFI_State_Set)(XLA_FFI_State_Args* args);
  XLA_FFI_Error* (*XLA_FFI_State_Get)(XLA_FFI_State_Args* args);
  XLA_FFI_Unimplemented* XLA_FFI_DeviceMemory_Allocate;
  XLA_FFI_Unimplemented* XLA_FFI_DeviceMemory_Free;
  XLA_FFI_Error* (*XLA_FFI_ThreadPool_Schedule)(XLA_FFI_ThreadPool_Schedule_Args* args);
  XLA_FFI_Error* (*XLA_FFI_ThreadPool_NumThreads)(XLA_FFI_ThreadPool_NumThreads_Args* args);
  XLA_FFI_Error* (*XLA_FFI_Future_Create)(XLA_FFI_Future_Create_Args* args);
  XLA_FFI_Error* (*XLA_FFI_Future_SetAvailable)(XLA_FFI_Future_SetAvailable_Args* args);
  XLA_FFI_Error* (*XLA_FFI_Future_SetError)(XLA_FFI_Future_SetError_Args* args);
  XLA_FFI_Error* (*XLA_FFI_RunId_Get)(XLA_FFI_RunId_Get_Args* args);
  XLA_FFI_Error* (*XLA_FFI_DeviceOrdinal_Get)(XLA_FFI_DeviceOrdinal_Get_Args* args);
  XLA_FFI_Error* (*XLA_FFI_InvokeContext_FindExtension)(XLA_FFI_InvokeContext_FindExtension_Args* args); /* since 0.5 */
  XLA_FFI_Error* (*XLA_FFI_CustomOptions_Get)(XLA_FFI_CustomOptions_Get_Args* args);                     /* since 0.5 */
} XLA_FFI_Api;

#ifdef __cplusplus
}

static_assert(sizeof(XLA_FFI_Extension_Base) == 24 && sizeof(XLA_FFI_Api_Version) == 24);
static_assert(sizeof(XLA_FFI_Buffer) == 48 && offsetof(XLA_FFI_Buffer, data) == 24);
static_assert(sizeof(XLA_FFI_Scalar) == 16 && sizeof(XLA_FFI_Array) == 24 && sizeof(XLA_FFI_ByteSpan) == 16);
static_assert(sizeof(XLA_FFI_Args) == 40 && sizeof(XLA_FFI_Rets) == 40 && sizeof(XLA_FFI_Attrs) == 48);
static_assert(sizeof(XLA_FFI_CallFrame) == 176 && offsetof(XLA_FFI_CallFrame, future) == 168);
static_assert(sizeof(XLA_FFI_Metadata) == 48 && sizeof(XLA_FFI_Metadata_Extension) == 32);
static_assert(sizeof(XLA_FFI_Handler_Bundle) == 40 && sizeof(XLA_FFI_Handler_Register_Args) == 96);
static_assert(sizeof(XLA_FFI_State_Args) == 48 && sizeof(XLA_FFI_Type_Register_Args) == 48);
static_assert(sizeof(XLA_FFI_Api) == 208 && offsetof(XLA_FFI_Api, XLA_FFI_Error_Create) == 48);
#endif

#endif /* HLOKIT_PJRT_C_API_XLA_FFI_H_ */
