// SPDX-License-Identifier: Apache-2.0
#include "passes/target/device_description.h"

#include <cmath>

namespace hlokit::tpu {

namespace {

constexpr DeviceDescriptionField kFields[] = {
#define FIELD(name, unit, minimum, maximum, meaning) \
  {#name, UnitKind::unit, minimum, maximum, meaning, &DeviceDescription::name},
#include "passes/target/device_description_fields.def"
};

}  // namespace

absl::Span<const DeviceDescriptionField> DeviceDescriptionFields() { return kFields; }

const DeviceDescriptionField* FindDeviceDescriptionField(std::string_view name) {
  for (const DeviceDescriptionField& field : kFields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

double DeviceDescription::ErrorOf(std::string_view figure) const {
  const DeviceDescriptionField* field = FindDeviceDescriptionField(figure);
  const size_t row = field == nullptr ? errors.size() : static_cast<size_t>(field - kFields);
  return row < errors.size() ? errors[row] : 0;
}

double DeviceDescription::PeakFlops() const {
  return static_cast<double>(cores_per_device()) * mxu_count * 2 * mxu_size * mxu_size * clock * mxu_rows_per_cycle;
}

std::vector<std::string_view> BuiltinDeviceDescriptions() {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < kBuiltinDeviceDescriptionCount; ++i) names.push_back(kBuiltinDeviceDescriptions[i].name);
  return names;
}

std::optional<std::string_view> BuiltinDeviceDescriptionText(std::string_view name) {
  for (size_t i = 0; i < kBuiltinDeviceDescriptionCount; ++i) {
    if (kBuiltinDeviceDescriptions[i].name == name) return kBuiltinDeviceDescriptions[i].text;
  }
  return std::nullopt;
}

std::optional<DeviceDescription> BuiltinDeviceDescription(std::string_view name) {
  const std::optional<std::string_view> text = BuiltinDeviceDescriptionText(name);
  if (!text) return std::nullopt;
  DiagnosticSink sink;
  return ParseDeviceDescription(SourceBuffer(std::string(name), std::string(*text)), &sink);
}

DeviceDescription Scaled(DeviceDescription machine, double factor) {
  for (const DeviceDescriptionField& field : kFields) {
    double& value = machine.*field.member;
    switch (field.unit) {
      case UnitKind::kFrequency:
      case UnitKind::kRate:
        value *= factor;
        break;
      case UnitKind::kTime:
        value /= factor;
        break;
      case UnitKind::kCount:
      case UnitKind::kFraction:
      case UnitKind::kBytes:
        break;
    }
  }
  return machine;
}

}  // namespace hlokit::tpu
