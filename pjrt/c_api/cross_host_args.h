// SPDX-License-Identifier: Apache-2.0
// The extension for transfers between processes, version 5.
#ifndef HLOKIT_PJRT_C_API_CROSS_HOST_ARGS_H_
#define HLOKIT_PJRT_C_API_CROSS_HOST_ARGS_H_

#include <cstddef>
#include <cstdint>

#include "pjrt/c_api/types.h"

extern "C" {

struct PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  size_t num_buffers;
  PJRT_Buffer** buffers;
  const int32_t* dst_global_device_ids;
  const int64_t* transfer_keys;
  PJRT_Event** send_events;  // out
};

struct PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  size_t num_shapes;
  size_t* shape_num_dims;
  const int64_t** num_dims;  // dimensions
  PJRT_Buffer_Type* element_types;
  PJRT_Buffer_MemoryLayout** layouts;
  PJRT_Device* device;
  const int32_t* src_global_device_ids;
  const int64_t* transfer_keys;
  PJRT_Buffer** buffers;  // out
};

// Of the older form of the interface.
struct PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
};
struct PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Event* event;
  char** serialized_descriptor;
  size_t* serialized_descriptor_size;
  void* user_arg;
  void (*on_done)(PJRT_Error* error, bool sends_were_enqueued, void* user_arg);
};

struct PJRT_CrossHostTransfers_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*make_cross_host_receive_buffers)(PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args* args);
  void (*copy_to_remote_device)(PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args* args);
  PJRT_Error* (*cross_host_receive_buffers)(PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args* args);
  PJRT_Error* (*cross_host_send_buffers)(PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args* args);
};

}  // extern "C"

static_assert(sizeof(PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args) == 64);
static_assert(sizeof(PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args) == 96);
static_assert(sizeof(PJRT_CrossHostTransfers_Extension) == 56);

#endif  // HLOKIT_PJRT_C_API_CROSS_HOST_ARGS_H_
