// SPDX-License-Identifier: Apache-2.0
// Access to structs of arguments whose size the caller decides: an older caller's struct ends before the fields that it
// does not know.
#ifndef HLOKIT_PJRT_VALUES_ARGUMENTS_H_
#define HLOKIT_PJRT_VALUES_ARGUMENTS_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace hlokit::pjrt {

// Returns true if the caller's struct reaches the end of `field`.
template <typename Args, typename Field>
bool HasField(const Args& args, Field Args::*field) {
  const size_t begin =
      static_cast<size_t>(reinterpret_cast<const char*>(&(args.*field)) - reinterpret_cast<const char*>(&args));
  return args.struct_size >= begin + sizeof(Field);
}

// Returns the field, or `absent` if the caller's struct does not have it.
template <typename Args, typename Field>
Field FieldOr(const Args& args, Field Args::*field, Field absent) {
  return HasField(args, field) ? args.*field : absent;
}

// Writes an output field if the caller's struct has it.
template <typename Args, typename Field>
void SetField(Args* args, Field Args::*field, Field value) {
  if (HasField(*args, field)) args->*field = value;
}

// Returns the text of a pointer, which may be null, and a size.
inline std::string_view TextOf(const char* text, size_t size) {
  return text == nullptr ? std::string_view() : std::string_view(text, size);
}

// Sets the two output fields of a text, which outlives the call.
template <typename Args>
void SetText(Args* args, const char* Args::*text, size_t Args::*size, const std::string& value) {
  args->*text = value.c_str();
  args->*size = value.size();
}

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_VALUES_ARGUMENTS_H_
