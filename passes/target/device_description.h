// SPDX-License-Identifier: Apache-2.0
// A TPU generation as figures, read from text. A description is
//
//   tpu v6e
//     clock      1.75 GHz    # openxla/xprof, device capabilities
//     hbm_rate   1638 GB/s   # Google Cloud TPU documentation, v6e
//
// one figure a line with its unit and, after '#', where it comes from. `like NAME` as the first line of the body starts
// from an installed description. The keys are the rows of device_description_fields.def; a description without `like`
// has them all. Rates are decimal (GB/s = 1e9 bytes a second), sizes binary where the unit says so (GiB).
#ifndef HLOKIT_PASSES_TARGET_DEVICE_DESCRIPTION_H_
#define HLOKIT_PASSES_TARGET_DEVICE_DESCRIPTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"

namespace hlokit::tpu {

enum class UnitKind : uint8_t { kCount, kFraction, kFrequency, kTime, kBytes, kRate };

// In SI units: hertz, seconds, bytes, bytes a second.
struct DeviceDescription {
  std::string name;
#define FIELD(name, unit, minimum, maximum, meaning) double name = 0;
#include "passes/target/device_description_fields.def"
  std::vector<std::string> sources;  // by row; empty where the text gave none

  // Devices that run a program each: chips, or cores where cores are not joined.
  int64_t devices_per_chip() const { return megacore != 0 ? 1 : static_cast<int64_t>(cores_per_chip); }
  // Of one device.
  int64_t cores_per_device() const { return megacore != 0 ? static_cast<int64_t>(cores_per_chip) : 1; }
  double PeakFlops() const;  // bf16
  double HbmBytes() const { return hbm_size / static_cast<double>(devices_per_chip()); }
  double HbmRate() const { return hbm_rate / static_cast<double>(devices_per_chip()); }
  double VmemBytes() const { return vmem_size * static_cast<double>(cores_per_device()); }
  // With the common memory that older chips have beside it, and which holds arrays as it does.
  double OnChipBytes() const { return VmemBytes() + cmem_size / static_cast<double>(devices_per_chip()); }
};

struct DeviceDescriptionField {
  std::string_view name;
  UnitKind unit;
  double minimum;
  double maximum;
  std::string_view meaning;
  double DeviceDescription::*member;
};
absl::Span<const DeviceDescriptionField> DeviceDescriptionFields();
const DeviceDescriptionField* FindDeviceDescriptionField(std::string_view name);

// nullopt if there are errors, which go to `sink`.
std::optional<DeviceDescription> ParseDeviceDescription(const SourceBuffer& source, DiagnosticSink* sink);
// Text that reads back as the same machine.
std::string ToString(const DeviceDescription& machine);

// The descriptions that come with the program, by name.
std::vector<std::string_view> BuiltinDeviceDescriptions();
// Text of an installed description; nullopt if there is none of that name.
std::optional<std::string_view> BuiltinDeviceDescriptionText(std::string_view name);
std::optional<DeviceDescription> BuiltinDeviceDescription(std::string_view name);

// The machine with every rate multiplied and every latency divided by `factor`.
DeviceDescription Scaled(DeviceDescription machine, double factor);

// What the build makes of machines/*.tpu.
struct BuiltinText {
  std::string_view name;
  std::string_view text;
};
extern const BuiltinText kBuiltinDeviceDescriptions[];
extern const size_t kBuiltinDeviceDescriptionCount;

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_DEVICE_DESCRIPTION_H_
