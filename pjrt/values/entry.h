// SPDX-License-Identifier: Apache-2.0
// The boundary between C and C++: calls a function, and turns its status, or an exception, into an error of the caller.
#ifndef HLOKIT_PJRT_VALUES_ENTRY_H_
#define HLOKIT_PJRT_VALUES_ENTRY_H_

#include <exception>
#include <new>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "pjrt/values/error.h"

namespace hlokit::pjrt {

// `handle`: a pointer among the arguments that must not be null.
template <typename Args, typename Handle>
PJRT_Error* CallEntry(const char* name, Args* args, Handle Args::*handle, absl::Status (*function)(Args*)) {
  try {
    if (args == nullptr) return NewError(absl::InvalidArgumentError(std::string(name) + ": the arguments are null"));
    if constexpr (std::is_pointer_v<Handle>) {
      if (args->*handle == nullptr) {
        return NewError(absl::InvalidArgumentError(std::string(name) + ": the object of the call is null"));
      }
    }
    return NewError(function(args));
  } catch (const std::bad_alloc&) {
    return NewError(absl::ResourceExhaustedError(std::string(name) + ": out of memory"));
  } catch (const std::exception& e) {
    return NewError(absl::InternalError(std::string(name) + ": " + e.what()));
  } catch (...) {
    return NewError(absl::InternalError(std::string(name) + ": an exception"));
  }
}

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_VALUES_ENTRY_H_
