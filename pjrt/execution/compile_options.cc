// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "interp/interface/evaluator_options.h"
#include "ir/core/str_cat.h"
#include "parser/proto/xla.pb.h"
#include "pjrt/execution/program.h"

namespace hlokit::pjrt {
namespace {

constexpr int64_t kMaxDevices = interp::EvaluatorOptions::kMaxDevices;

absl::Status ReadAssignment(const xla::DeviceAssignmentProto& proto, CompileOptions* options) {
  const int64_t replicas = proto.replica_count(), partitions = proto.computation_count();
  if (replicas != options->num_replicas || partitions != options->num_partitions ||
      proto.computation_devices_size() != partitions) {
    return absl::InvalidArgumentError(StrCat("the device assignment is for ", replicas, " replicas of ", partitions,
                                             " partitions, the program for ", options->num_replicas, " of ",
                                             options->num_partitions));
  }
  options->devices.resize(static_cast<size_t>(replicas * partitions));
  for (int64_t p = 0; p < partitions; ++p) {
    const auto& of_replicas = proto.computation_devices(static_cast<int>(p)).replica_device_ids();
    if (of_replicas.size() != replicas) {
      return absl::InvalidArgumentError(StrCat("the device assignment has ", of_replicas.size(),
                                               " devices for partition ", p, ", and there are ", replicas,
                                               " replicas"));
    }
    for (int64_t r = 0; r < replicas; ++r) {
      const int64_t id = of_replicas[static_cast<int>(r)];
      if (id < 0 || id >= kMaxDevices) return absl::InvalidArgumentError(StrCat("there is no device ", id));
      options->devices[static_cast<size_t>(r * partitions + p)] = static_cast<int>(id);
    }
  }
  std::vector<int> sorted = options->devices;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return absl::InvalidArgumentError(StrCat("the device assignment has device ", *twice, " twice"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CompileOptions> ReadCompileOptions(std::string_view serialized) {
  xla::CompileOptionsProto proto;
  if (serialized.size() > static_cast<size_t>(INT32_MAX) ||
      !proto.ParseFromArray(serialized.data(), static_cast<int>(serialized.size()))) {
    return absl::InvalidArgumentError("PJRT_Client_Compile: failed to deserialize CompileOptionsProto");
  }
  // Options of XLA's own compiler have no effect on values.
  for (const auto& [name, value] : proto.env_option_overrides()) {
    if (name.rfind("xla_", 0) != 0) {
      return absl::InvalidArgumentError(StrCat("No such compile option: '", name, "'"));
    }
  }
  const xla::ExecutableBuildOptionsProto& build = proto.executable_build_options();
  CompileOptions options;
  for (const auto& [name, value] : proto.env_option_overrides()) {
    if (name == "xla_dump_to") options.dump_to = value.string_field();
    if (name == "xla_dump_hlo_as_text") options.dump_as_text = value.bool_field();
    if (name == "xla_dump_hlo_as_proto") options.dump_as_proto = value.bool_field();
  }
  options.serialized = std::string(serialized);
  options.num_replicas = std::max<int64_t>(build.num_replicas(), 1);
  options.num_partitions = std::max<int64_t>(build.num_partitions(), 1);
  if (options.num_replicas > kMaxDevices || options.num_partitions > kMaxDevices / options.num_replicas) {
    return absl::InvalidArgumentError(StrCat(options.num_replicas, " replicas of ", options.num_partitions,
                                             " partitions exceed the limit of ", kMaxDevices, " devices"));
  }
  options.portable = proto.compile_portable_executable();
  options.use_spmd_partitioning = build.use_spmd_partitioning();
  for (const bool value : build.allow_spmd_sharding_propagation_to_output()) {
    options.propagate_to_outputs.push_back(value);
  }
  for (const bool value : build.allow_spmd_sharding_propagation_to_parameters()) {
    options.propagate_to_parameters.push_back(value);
  }
  options.device_ordinal = build.device_ordinal();
  if (build.has_device_assignment()) {
    if (absl::Status status = ReadAssignment(build.device_assignment(), &options); !status.ok()) return status;
    options.device_ordinal = -1;
  } else if (options.device_ordinal == 0 && !build.has_device_assignment()) {
    // 0 is what a message without the field says, too.
    options.device_ordinal = -1;
  }
  return options;
}

}  // namespace hlokit::pjrt
