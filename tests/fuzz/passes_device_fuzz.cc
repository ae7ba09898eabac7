// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as the description of a device. The text of an accepted one parses to an equal description.
// The last line is parsed as a topology of a built-in device.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "passes/target/device_description.h"
#include "passes/target/topology.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlokit;
  if (size > 1 << 14) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  static const std::optional<tpu::DeviceDescription> builtin = tpu::BuiltinDeviceDescription("v5p");
  if (!builtin) std::abort();
  const absl::StatusOr<tpu::Topology> topology =
      tpu::ParseTopology(*builtin, std::string_view(text).substr(text.rfind('\n') + 1));
  if (topology.ok()) tpu::ToString(*topology);
  DiagnosticSink sink;
  const std::optional<tpu::DeviceDescription> device = tpu::ParseDeviceDescription(SourceBuffer("fuzz", text), &sink);
  if (!device) {
    if (!sink.has_errors()) std::abort();  // a rejection has a diagnostic
    return 0;
  }
  const std::string printed = tpu::ToString(*device);
  DiagnosticSink again_sink;
  const std::optional<tpu::DeviceDescription> again =
      tpu::ParseDeviceDescription(SourceBuffer("printed", printed), &again_sink);
  if (!again || tpu::ToString(*again) != printed) std::abort();
  return 0;
}
