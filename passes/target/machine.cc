// SPDX-License-Identifier: Apache-2.0
#include "passes/target/machine.h"

#include <cmath>

namespace hlokit::tpu {

namespace {

constexpr MachineField kFields[] = {
#define FIELD(name, dimension, minimum, maximum, meaning) \
  {#name, Dimension::dimension, minimum, maximum, meaning, &Machine::name},
#include "passes/target/machine_fields.def"
};

}  // namespace

absl::Span<const MachineField> MachineFields() { return kFields; }

const MachineField* FindMachineField(std::string_view name) {
  for (const MachineField& field : kFields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

double Machine::PeakFlops() const {
  return static_cast<double>(cores_per_device()) * mxu_count * 2 * mxu_size * mxu_size * clock * mxu_rows_per_cycle;
}

std::vector<std::string_view> InstalledMachines() {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < kInstalledMachineCount; ++i) names.push_back(kInstalledMachines[i].name);
  return names;
}

std::optional<std::string_view> InstalledMachineText(std::string_view name) {
  for (size_t i = 0; i < kInstalledMachineCount; ++i) {
    if (kInstalledMachines[i].name == name) return kInstalledMachines[i].text;
  }
  return std::nullopt;
}

std::optional<Machine> InstalledMachine(std::string_view name) {
  const std::optional<std::string_view> text = InstalledMachineText(name);
  if (!text) return std::nullopt;
  DiagnosticSink sink;
  return ParseMachine(SourceBuffer(std::string(name), std::string(*text)), &sink);
}

Machine Faster(Machine machine, double factor) {
  for (const MachineField& field : kFields) {
    double& value = machine.*field.member;
    switch (field.dimension) {
      case Dimension::kFrequency:
      case Dimension::kRate:
        value *= factor;
        break;
      case Dimension::kTime:
        value /= factor;
        break;
      case Dimension::kCount:
      case Dimension::kFraction:
      case Dimension::kBytes:
        break;
    }
  }
  return machine;
}

}  // namespace hlokit::tpu
