// SPDX-License-Identifier: Apache-2.0
// Shows arbitrary bytes as a profile (.xplane.pb), as text and as a trace; and parses them as a model of the host.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/core/text_writer.h"
#include "runtime/observe/profile_files.h"
#include "simulator/timing/host.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlokit;
  if (size > 1 << 16) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)tpu::ParseHostModel(bytes, 1e-5, 1e10);
  std::string text;
  TextWriter out(&text);
  if (!runtime::PrintProfile(bytes, 20, &out).ok()) return 0;
  (void)runtime::WriteProfileTrace(bytes, 1000, &out);
  return 0;
}
