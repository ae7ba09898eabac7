// SPDX-License-Identifier: Apache-2.0
// A TPU generation as parameters, read from text. A description is
//
//   tpu v6e
//     clock      1.75 GHz    # openxla/xprof, device capabilities
//     hbm_rate   1638 GB/s   # Google Cloud TPU documentation, v6e
//     vpu_efficiency  0.5 +-30%   # assumed
//
// with one parameter a line, its unit, its error bar (a relative standard deviation) if it has one and, after '#', its
// source. `like NAME` as the first line of the body starts from
// a built-in description. The keys are the rows of device_description_fields.def; a description without `like` has them
// all. Rates are decimal (GB/s = 1e9 bytes per second), sizes binary where the unit is (GiB).
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

// In SI units: hertz, seconds, bytes, bytes per second.
struct DeviceDescription {
  std::string name;
#define FIELD(name, unit, minimum, maximum, meaning) double name = 0;
#include "passes/target/device_description_fields.def"
  std::vector<std::string> sources;  // by row; empty if the text has none
  std::vector<double> errors;        // by row: relative standard deviation, 0 if the text has none

  // Returns the relative error bar of a figure.
  double ErrorOf(std::string_view figure) const;

  // Returns the devices per chip: devices are chips, or cores if cores are not joined (megacore).
  int64_t devices_per_chip() const { return megacore != 0 ? 1 : static_cast<int64_t>(cores_per_chip); }
  // Returns the number of cores of one device.
  int64_t cores_per_device() const { return megacore != 0 ? static_cast<int64_t>(cores_per_chip) : 1; }
  double PeakFlops() const;  // bf16
  double HbmBytes() const { return hbm_size / static_cast<double>(devices_per_chip()); }
  double HbmRate() const { return hbm_rate / static_cast<double>(devices_per_chip()); }
  double VmemBytes() const { return vmem_size * static_cast<double>(cores_per_device()); }
  // Includes the common memory (CMEM) of older chips, which holds arrays as VMEM does.
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

// Returns nullopt if there are errors, which are added to `sink`.
std::optional<DeviceDescription> ParseDeviceDescription(const SourceBuffer& source, DiagnosticSink* sink);
// Returns text that parses to an equal description.
std::string ToString(const DeviceDescription& machine);

// Returns the names of the built-in descriptions.
std::vector<std::string_view> BuiltinDeviceDescriptions();
// Returns the text of a built-in description, or nullopt.
std::optional<std::string_view> BuiltinDeviceDescriptionText(std::string_view name);
std::optional<DeviceDescription> BuiltinDeviceDescription(std::string_view name);

// Returns `machine` with every rate multiplied and every latency divided by `factor`.
DeviceDescription Scaled(DeviceDescription machine, double factor);

// A file machines/*.tpu, embedded by the build.
struct BuiltinText {
  std::string_view name;
  std::string_view text;
};
extern const BuiltinText kBuiltinDeviceDescriptions[];
extern const size_t kBuiltinDeviceDescriptionCount;

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_DEVICE_DESCRIPTION_H_
