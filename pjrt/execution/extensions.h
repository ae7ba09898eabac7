// SPDX-License-Identifier: Apache-2.0
// The extensions of the table: layouts, shardings, memories of device descriptions, callbacks, profiles.
#ifndef HLOKIT_PJRT_EXECUTION_EXTENSIONS_H_
#define HLOKIT_PJRT_EXECUTION_EXTENSIONS_H_

#include "pjrt/c_api/extension_args.h"
#include "pjrt/client/buffer.h"

namespace hlokit::pjrt {

// Returns the layout of an array, which lives as long as the process.
PJRT_Layouts_MemoryLayout* SharedLayout(const BufferSpec& spec);

// Returns the first extension of a chain of all of them, which is constant.
PJRT_Extension_Base* Extensions();

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_EXECUTION_EXTENSIONS_H_
