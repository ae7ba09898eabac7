// SPDX-License-Identifier: Apache-2.0
// Element types of the interface, which has numbers of its own, and of HLO.
#ifndef HLOKIT_PJRT_VALUES_BUFFER_TYPE_H_
#define HLOKIT_PJRT_VALUES_BUFFER_TYPE_H_

#include "absl/status/statusor.h"
#include "ir/types/element_type.h"
#include "pjrt/c_api/types.h"

namespace hlokit::pjrt {

// Returns INVALID for types that are neither arrays nor tokens.
PJRT_Buffer_Type BufferTypeOf(ElementType type);
// Returns UNIMPLEMENTED for types that HLO of this version does not have (6-bit floats), and an error for numbers that
// are not types.
absl::StatusOr<ElementType> ElementTypeOf(PJRT_Buffer_Type type);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_VALUES_BUFFER_TYPE_H_
