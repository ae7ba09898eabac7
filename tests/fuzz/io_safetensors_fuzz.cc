// SPDX-License-Identifier: Apache-2.0
// Decodes arbitrary bytes as a safetensors file. What an accepted one holds is encoded and decoded to the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "io/arrays/safetensors.h"
#include "ir/graph/context.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlokit;
  if (size > 1 << 14) return 0;
  Context context;
  const absl::StatusOr<interp::SafetensorsFile> file =
      interp::DecodeSafetensors(std::string_view(reinterpret_cast<const char*>(data), size), &context);
  if (!file.ok()) return 0;
  const absl::StatusOr<std::string> bytes = interp::EncodeSafetensors(file->tensors, file->metadata);
  if (!bytes.ok()) return 0;
  const absl::StatusOr<interp::SafetensorsFile> again = interp::DecodeSafetensors(*bytes, &context);
  if (!again.ok() || *interp::EncodeSafetensors(again->tensors, again->metadata) != *bytes) std::abort();
  return 0;
}
