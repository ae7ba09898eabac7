// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as a pipeline of passes. The canonical form of an accepted one parses to itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "passes/core/pipeline.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hlokit::Pipeline;
  if (size > 1 << 12) return 0;
  const absl::StatusOr<Pipeline> pipeline =
      Pipeline::Parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!pipeline.ok()) return 0;
  const std::string text = pipeline->ToString();
  const absl::StatusOr<Pipeline> again = Pipeline::Parse(text);
  if (!again.ok() || again->ToString() != text) std::abort();
  return 0;
}
