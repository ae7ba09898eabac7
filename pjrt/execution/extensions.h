// SPDX-License-Identifier: Apache-2.0
// The extensions of the table: layouts, shardings, memories of device descriptions, callbacks, profiles.
#ifndef HLOKIT_PJRT_EXECUTION_EXTENSIONS_H_
#define HLOKIT_PJRT_EXECUTION_EXTENSIONS_H_

#include "pjrt/c_api/extension_args.h"

namespace hlokit::pjrt {

// Returns the layout of row-major arrays of a rank, which lives as long as the process.
PJRT_Layouts_MemoryLayout* SharedLayout(size_t rank);

// Returns the first extension of a chain of all of them, which is constant.
PJRT_Extension_Base* Extensions();

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_EXECUTION_EXTENSIONS_H_
