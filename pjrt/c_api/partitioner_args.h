// SPDX-License-Identifier: Apache-2.0
// The extension for custom partitioning, version 1: callbacks of the framework that divide a custom-call.
#ifndef HLOKIT_PJRT_C_API_PARTITIONER_ARGS_H_
#define HLOKIT_PJRT_C_API_PARTITIONER_ARGS_H_

#include <cstddef>
#include <cstdint>

#include "pjrt/c_api/types.h"

extern "C" {

struct JAX_CustomCallPartitioner_string {
  const char* data;
  size_t size;
};

struct JAX_CustomCallPartitioner_aval {
  JAX_CustomCallPartitioner_string shape;  // a serialized ShapeProto
  bool has_sharding;
  JAX_CustomCallPartitioner_string sharding;  // a serialized OpSharding
};

// What results live in until cleanup_fn(data), and their error.
struct JAX_CustomCallPartitioner_version_and_error {
  int64_t api_version;
  void* data;                                  // out
  void (*cleanup_fn)(void* data);              // out
  bool has_error;                              // out
  PJRT_Error_Code code;                        // out
  JAX_CustomCallPartitioner_string error_msg;  // out
};

struct JAX_CustomCallPartitioner_Partition_Args {
  JAX_CustomCallPartitioner_version_and_error header;
  size_t num_args;
  JAX_CustomCallPartitioner_aval* op_args;
  JAX_CustomCallPartitioner_aval op_result;
  JAX_CustomCallPartitioner_string backend_config;
  JAX_CustomCallPartitioner_string mlir_module;      // out: the program of one device
  JAX_CustomCallPartitioner_string* args_sharding;   // out
  JAX_CustomCallPartitioner_string result_sharding;  // out
};

struct JAX_CustomCallPartitioner_Callbacks {
  int64_t version;
  void* private_data;
  void (*dtor)(JAX_CustomCallPartitioner_Callbacks* callbacks);
  void (*partition)(JAX_CustomCallPartitioner_Callbacks* callbacks, JAX_CustomCallPartitioner_Partition_Args* args);
  void (*infer_sharding)(JAX_CustomCallPartitioner_Callbacks* callbacks, void* args);
  void (*propagate_user_sharding)(JAX_CustomCallPartitioner_Callbacks* callbacks, void* args);
  bool can_side_effecting_have_replicated_sharding;
};

struct PJRT_Register_Custom_Partitioner_Args {
  size_t struct_size;
  const char* name;
  size_t name_size;
  JAX_CustomCallPartitioner_Callbacks* callbacks;  // the plugin's from now on
};

struct PJRT_Register_Batch_Partitionable_Args {
  size_t struct_size;
  const char* name;
  size_t name_size;
};

struct PJRT_Custom_Partitioner_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*register_custom_partitioner)(PJRT_Register_Custom_Partitioner_Args* args);
  PJRT_Error* (*register_batch_partitionable)(PJRT_Register_Batch_Partitionable_Args* args);
};

}  // extern "C"

static_assert(sizeof(JAX_CustomCallPartitioner_version_and_error) == 48 &&
              offsetof(JAX_CustomCallPartitioner_Partition_Args, result_sharding) == 144);
static_assert(sizeof(PJRT_Register_Custom_Partitioner_Args) == 32 && sizeof(PJRT_Custom_Partitioner_Extension) == 40);

#endif  // HLOKIT_PJRT_C_API_PARTITIONER_ARGS_H_
