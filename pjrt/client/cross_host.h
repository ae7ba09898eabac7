// SPDX-License-Identifier: Apache-2.0
// Transfers of buffers between processes.
#ifndef HLOKIT_PJRT_CLIENT_CROSS_HOST_H_
#define HLOKIT_PJRT_CLIENT_CROSS_HOST_H_

#include "absl/status/status.h"
#include "pjrt/c_api/cross_host_args.h"

namespace hlokit::pjrt {

absl::Status CrossHostSendBuffers(PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args* args);
absl::Status CrossHostReceiveBuffers(PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args* args);
// The older form, by descriptors of the receiver: UNIMPLEMENTED.
absl::Status MakeCrossHostReceiveBuffers(PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args* args);
void CopyToRemoteDevice(PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args* args);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_CLIENT_CROSS_HOST_H_
