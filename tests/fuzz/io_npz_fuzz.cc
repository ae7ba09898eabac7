// SPDX-License-Identifier: Apache-2.0
// Reads arbitrary bytes as an .npz file, and every array in it with the type that it says it has.
#include <cstddef>
#include <cstdint>
#include <string>

#include "io/arrays/array_file.h"
#include "ir/graph/context.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlokit;
  if (size > 1 << 14) return 0;
  Context context;
  const absl::StatusOr<interp::ArrayFile> file = interp::ArrayFile::OpenSource(
      ByteSource::OfMemory(std::string(reinterpret_cast<const char*>(data), size)), interp::ArrayFormat::kNpz);
  if (!file.ok()) return 0;
  for (size_t i = 0; i < file->names().size(); ++i) {
    const absl::StatusOr<interp::StoredArray> array = file->Array(i, 1 << 24);
    if (!array.ok() || array->dims.size() > 8) continue;
    // Shapes of arrays that no file of this size has are not made.
    if (interp::BytesOfDims(array->dims, array->element_bytes).value_or(UINT64_MAX) > 1 << 24) continue;
    (void)interp::ReadArray(*array, context.shapes.Array(array->type.value_or(ElementType::kU8), array->dims));
  }
  return 0;
}
