// SPDX-License-Identifier: Apache-2.0
#include "pjrt/execution/optimized_program.h"

#include <utility>

#include "parser/proto/header_proto.h"
#include "parser/proto/module_writer.h"
#include "parser/proto/serialize.h"
#include "pjrt/execution/entry_layouts.h"

namespace hlokit::pjrt {
namespace {

// The sharding of a leaf; a message without fields is that of a replicated one.
xla::OpSharding ShardingOf(const ProgramValue& value) {
  xla::OpSharding sharding;
  sharding.ParsePartialFromString(value.sharding);
  return sharding;
}

// What the partitioner was told of parameters and results, whose shapes are now those of one partition: callers that
// gather results have it from here.
void WriteShardings(const Module& module, const Program& program, xla::HloModuleProto* out) {
  size_t leaf = 0;
  const auto write = [&](Shape shape, absl::Span<const ProgramValue> values, xla::OpSharding* to) {
    if (!shape.IsTuple()) {
      *to = ShardingOf(values[leaf++]);
      return;
    }
    to->set_type(xla::OpSharding::TUPLE);
    for (int64_t i = 0; i < shape.leaf_count(); ++i) *to->add_tuple_shardings() = ShardingOf(values[leaf++]);
  };
  const Computation entry = module.entry();
  for (int64_t i = 0; i < entry.parameter_count(); ++i) {
    write(entry.parameter(i).shape(), program.parameters, out->add_spmd_parameters_shardings());
  }
  leaf = 0;
  write(entry.root().shape(), program.results, out->mutable_spmd_output_sharding());
}

}  // namespace

xla::DeviceAssignmentProto AssignmentProto(const CompileOptions& options, absl::Span<const int> ids) {
  xla::DeviceAssignmentProto proto;
  proto.set_replica_count(static_cast<int>(options.num_replicas));
  proto.set_computation_count(static_cast<int>(options.num_partitions));
  for (int64_t p = 0; p < options.num_partitions; ++p) {
    xla::DeviceAssignmentProto::ComputationDevice* const of_partition = proto.add_computation_devices();
    for (int64_t r = 0; r < options.num_replicas; ++r) {
      of_partition->add_replica_device_ids(ids[static_cast<size_t>(r * options.num_partitions + p)]);
    }
  }
  return proto;
}

absl::StatusOr<std::string> OptimizedProgramBytes(const Module& module, const Program& program) {
  const CompileOptions& options = program.options;
  xla::HloModuleProtoWithConfig proto;
  if (absl::Status status = WriteModuleProto(module, {}, proto.mutable_hlo_module()); !status.ok()) return status;
  if (absl::Status status = WriteConfigProto(module, proto.mutable_config()); !status.ok()) return status;
  WriteLayouts(program, proto.mutable_config()->mutable_entry_computation_layout());
  WriteLayouts(program, proto.mutable_hlo_module()->mutable_host_program_shape());
  proto.mutable_config()->set_use_spmd_partitioning(options.use_spmd_partitioning);
  if (options.num_partitions > 1 && options.use_spmd_partitioning) {
    WriteShardings(module, program, proto.mutable_hlo_module());
  }
  if (!options.devices.empty()) {
    *proto.mutable_config()->mutable_static_device_assignment() = AssignmentProto(options, options.devices);
  }
  std::string bytes = SerializedMessage(proto);
  if (bytes.empty()) return absl::ResourceExhaustedError("the optimized program takes 2 GiB or more");
  return bytes;
}

}  // namespace hlokit::pjrt
