// SPDX-License-Identifier: Apache-2.0
// Reads arbitrary bytes as an .npy file of a small array.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "io/arrays/npy.h"
#include "ir/graph/context.h"
#include "parser/formats/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlokit;
  if (size > 1 << 12) return 0;
  static Context* const context = new Context();
  static const Shape shapes[] = {*ParseShapeText("f32[2,3]", context), *ParseShapeText("s8[4]{0}", context),
                                 *ParseShapeText("c64[]", context), *ParseShapeText("bf16[1,2]{0,1}", context)};
  for (const Shape shape : shapes) {
    (void)interp::ReadNpy(std::string_view(reinterpret_cast<const char*>(data), size), shape);
  }
  return 0;
}
