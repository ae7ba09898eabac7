// SPDX-License-Identifier: Apache-2.0
// A TPU generation as figures, read from text. A description is
//
//   tpu v6e
//     clock      1.75 GHz    # openxla/xprof, device capabilities
//     hbm_rate   1638 GB/s   # Google Cloud TPU documentation, v6e
//
// one figure a line with its unit and, after '#', where it comes from. `like NAME` as the first line of the body starts
// from an installed description. The keys are the rows of machine_fields.def; a description without `like` has them
// all. Rates are decimal (GB/s = 1e9 bytes a second), sizes binary where the unit says so (GiB).
#ifndef HLOKIT_PASSES_TARGET_MACHINE_H_
#define HLOKIT_PASSES_TARGET_MACHINE_H_

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

enum class Dimension : uint8_t { kCount, kFraction, kFrequency, kTime, kBytes, kRate };

// In SI units: hertz, seconds, bytes, bytes a second.
struct Machine {
  std::string name;
#define FIELD(name, dimension, minimum, maximum, meaning) double name = 0;
#include "passes/target/machine_fields.def"
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

struct MachineField {
  std::string_view name;
  Dimension dimension;
  double minimum;
  double maximum;
  std::string_view meaning;
  double Machine::*member;
};
absl::Span<const MachineField> MachineFields();
const MachineField* FindMachineField(std::string_view name);

// nullopt if there are errors, which go to `sink`.
std::optional<Machine> ParseMachine(const SourceBuffer& source, DiagnosticSink* sink);
// Text that reads back as the same machine.
std::string ToText(const Machine& machine);

// The descriptions that come with the program, by name.
std::vector<std::string_view> InstalledMachines();
// Text of an installed description; nullopt if there is none of that name.
std::optional<std::string_view> InstalledMachineText(std::string_view name);
std::optional<Machine> InstalledMachine(std::string_view name);

// The machine with every rate multiplied and every latency divided by `factor`.
Machine Faster(Machine machine, double factor);

// What the build makes of machines/*.tpu.
struct InstalledText {
  std::string_view name;
  std::string_view text;
};
extern const InstalledText kInstalledMachines[];
extern const size_t kInstalledMachineCount;

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_MACHINE_H_
