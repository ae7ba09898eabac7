// SPDX-License-Identifier: Apache-2.0
// The functions of the table as functions of C++, one a row of functions.def: api.cc makes C functions of them, which
// turn the status into a PJRT_Error and let no exception out. Arguments are not null; structs may be shorter than ours
// (arguments.h).
#ifndef HLOKIT_PJRT_VALUES_FUNCTIONS_H_
#define HLOKIT_PJRT_VALUES_FUNCTIONS_H_

#include "absl/status/status.h"
#include "pjrt/c_api/api.h"

namespace hlokit::pjrt {

#define HLOKIT_DECLARE_kVoid(name)
#define HLOKIT_DECLARE_kStub(name)
#define HLOKIT_DECLARE_kReal(name) absl::Status name(PJRT_##name##_Args* args);
#define PJRT_FUNCTION(kind, name, size, last_field, handle) HLOKIT_DECLARE_##kind(name)
#include "pjrt/c_api/functions.def"
#undef HLOKIT_DECLARE_kVoid
#undef HLOKIT_DECLARE_kStub
#undef HLOKIT_DECLARE_kReal

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_VALUES_FUNCTIONS_H_
