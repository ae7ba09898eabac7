// SPDX-License-Identifier: Apache-2.0
// What callers ask about compiled programs.
#include <cstring>

#include "ir/core/str_cat.h"
#include "parser/proto/serialize.h"
#include "parser/proto/xla.pb.h"
#include "passes/analysis/memory.h"
#include "pjrt/execution/executable.h"
#include "pjrt/execution/optimized_program.h"
#include "pjrt/values/arguments.h"
#include "pjrt/values/functions.h"

// Bytes that a caller holds until it calls the deleter.
struct PJRT_SerializedExecutable {
  std::string bytes;
};
struct PJRT_SerializedCompileOptions {
  std::string bytes;
};
struct PJRT_DeviceAssignmentSerialized {
  std::string bytes;
};

namespace hlokit::pjrt {

absl::Status Executable_Name(PJRT_Executable_Name_Args* args) {
  SetText(args, &PJRT_Executable_Name_Args::executable_name, &PJRT_Executable_Name_Args::executable_name_size,
          args->executable->compiled->program.name);
  return absl::OkStatus();
}

absl::Status Executable_NumReplicas(PJRT_Executable_NumReplicas_Args* args) {
  args->num_replicas = static_cast<size_t>(args->executable->compiled->program.options.num_replicas);
  return absl::OkStatus();
}

absl::Status Executable_NumPartitions(PJRT_Executable_NumPartitions_Args* args) {
  args->num_partitions = static_cast<size_t>(args->executable->compiled->program.options.num_partitions);
  return absl::OkStatus();
}

absl::Status Executable_NumOutputs(PJRT_Executable_NumOutputs_Args* args) {
  args->num_outputs = args->executable->compiled->program.results.size();
  return absl::OkStatus();
}

absl::Status Executable_SizeOfGeneratedCodeInBytes(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args* args) {
  args->size_in_bytes = 0;  // programs are interpreted
  return absl::OkStatus();
}

absl::Status Executable_GetCostAnalysis(PJRT_Executable_GetCostAnalysis_Args* args) {
  const NamedValues& properties = args->executable->compiled->CostProperties();
  args->num_properties = properties.size();
  args->properties = properties.data();
  return absl::OkStatus();
}

absl::Status Executable_OutputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args* args) {
  const CompiledProgram& compiled = *args->executable->compiled;
  args->num_outputs = compiled.result_memory_kinds.size();
  args->memory_kinds = compiled.result_memory_kinds.data();
  args->memory_kind_sizes = compiled.result_memory_kind_sizes.data();
  return absl::OkStatus();
}

absl::Status Executable_ParameterMemoryKinds(PJRT_Executable_ParameterMemoryKinds_Args* args) {
  const CompiledProgram& compiled = *args->executable->compiled;
  args->num_parameters = compiled.parameter_memory_kinds.size();
  args->memory_kinds = compiled.parameter_memory_kinds.data();
  args->memory_kind_sizes = compiled.parameter_memory_kind_sizes.data();
  return absl::OkStatus();
}

absl::Status Executable_OutputElementTypes(PJRT_Executable_OutputElementTypes_Args* args) {
  const CompiledProgram& compiled = *args->executable->compiled;
  args->output_types = const_cast<PJRT_Buffer_Type*>(compiled.result_types.data());
  args->num_output_types = compiled.result_types.size();
  return absl::OkStatus();
}

absl::Status Executable_OutputDimensions(PJRT_Executable_OutputDimensions_Args* args) {
  const CompiledProgram& compiled = *args->executable->compiled;
  args->num_outputs = compiled.result_ranks.size();
  args->dims = compiled.result_dims.data();
  args->dim_sizes = compiled.result_ranks.data();
  return absl::OkStatus();
}

// Called twice: for the size, then with an array of it.
absl::Status Executable_OptimizedProgram(PJRT_Executable_OptimizedProgram_Args* args) {
  static constexpr char kFormat[] = "hlo_with_config";
  if (args->program == nullptr) return absl::InvalidArgumentError("the program is null");
  const absl::StatusOr<const std::string*> bytes = args->executable->compiled->OptimizedProgram();
  if (!bytes.ok()) return bytes.status();
  PJRT_Program* const program = args->program;
  program->format = kFormat;
  program->format_size = sizeof(kFormat) - 1;
  if (program->code == nullptr) {
    program->code_size = (*bytes)->size();
    return absl::OkStatus();
  }
  if (program->code_size < (*bytes)->size()) {
    return absl::InvalidArgumentError(StrCat("the program takes ", static_cast<int64_t>((*bytes)->size()),
                                             " bytes; there is room for ", static_cast<int64_t>(program->code_size)));
  }
  std::memcpy(program->code, (*bytes)->data(), (*bytes)->size());
  program->code_size = (*bytes)->size();
  return absl::OkStatus();
}

absl::Status Executable_Fingerprint(PJRT_Executable_Fingerprint_Args* args) {
  SetText(args, &PJRT_Executable_Fingerprint_Args::executable_fingerprint,
          &PJRT_Executable_Fingerprint_Args::executable_fingerprint_size,
          args->executable->compiled->program.fingerprint);
  return absl::OkStatus();
}

namespace {

// Bytes of a device. Arguments that results take over count as both, and as aliased.
struct MemoryStats {
  int64_t arguments = 0, results = 0, aliased = 0, peak = 0;
};

absl::StatusOr<MemoryStats> MemoryStatsOf(const CompiledProgram& compiled) {
  MemoryStats stats;
  if (const SimulatedCosts* const simulated = compiled.Simulated(); simulated != nullptr) {
    return MemoryStats{simulated->argument_bytes, simulated->result_bytes, simulated->aliased_bytes,
                       simulated->peak_bytes};
  }
  const Program& program = compiled.program;
  for (const ProgramValue& parameter : program.parameters) {
    stats.arguments += parameter.spec.bytes;
    if (parameter.donatable) stats.aliased += parameter.spec.bytes;
  }
  for (const ProgramValue& result : program.results) stats.results += result.spec.bytes;
  stats.aliased = std::min(stats.aliased, stats.results);
  const absl::StatusOr<MemoryAnalysis> analysis = MemoryAnalysis::Create(compiled.ShownModule());
  if (!analysis.ok()) return analysis.status();
  stats.peak = analysis->OfModule().peak_bytes;
  return stats;
}

}  // namespace

absl::Status Executable_GetCompiledMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args* args) {
  using Args = PJRT_Executable_GetCompiledMemoryStats_Args;
  const absl::StatusOr<MemoryStats> stats = MemoryStatsOf(*args->executable->compiled);
  if (!stats.ok()) return stats.status();
  const int64_t passed = stats->arguments + stats->results - stats->aliased;
  const int64_t temporary = std::max<int64_t>(stats->peak - passed, 0);
  SetField(args, &Args::generated_code_size_in_bytes, int64_t{0});
  SetField(args, &Args::argument_size_in_bytes, stats->arguments);
  SetField(args, &Args::output_size_in_bytes, stats->results);
  SetField(args, &Args::alias_size_in_bytes, stats->aliased);
  SetField(args, &Args::temp_size_in_bytes, temporary);
  for (const auto field :
       {&Args::host_generated_code_size_in_bytes, &Args::host_argument_size_in_bytes, &Args::host_output_size_in_bytes,
        &Args::host_alias_size_in_bytes, &Args::host_temp_size_in_bytes}) {
    SetField(args, field, int64_t{0});
  }
  SetField(args, &Args::indefinite_allocations, passed);
  SetField(args, &Args::peak_memory_in_bytes, stats->peak);
  SetField(args, &Args::total_size_in_bytes, passed + temporary);
  SetField(args, &Args::total_allocation_bytes, passed + temporary);
  SetField(args, &Args::peak_unpadded_heap_bytes, stats->peak);
  return absl::OkStatus();
}

absl::Status Executable_Serialize(PJRT_Executable_Serialize_Args* args) {
  auto* const held = new PJRT_SerializedExecutable{SerializeProgram(args->executable->compiled->program)};
  SetText(args, &PJRT_Executable_Serialize_Args::serialized_bytes,
          &PJRT_Executable_Serialize_Args::serialized_bytes_size, held->bytes);
  args->serialized_executable = held;
  args->serialized_executable_deleter = [](PJRT_SerializedExecutable* executable) { delete executable; };
  return absl::OkStatus();
}

absl::Status Executable_GetCompileOptions(PJRT_Executable_GetCompileOptions_Args* args) {
  auto* const held = new PJRT_SerializedCompileOptions{args->executable->compiled->program.options.serialized};
  SetText(args, &PJRT_Executable_GetCompileOptions_Args::serialized_bytes,
          &PJRT_Executable_GetCompileOptions_Args::serialized_bytes_size, held->bytes);
  args->serialized_compile_options = held;
  args->serialized_compile_options_deleter = [](PJRT_SerializedCompileOptions* options) { delete options; };
  return absl::OkStatus();
}

// A serialized DeviceAssignmentProto; empty for a portable program.
absl::Status LoadedExecutable_GetDeviceAssignment(PJRT_LoadedExecutable_GetDeviceAssignment_Args* args) {
  const PJRT_LoadedExecutable& executable = *args->executable;
  const CompileOptions& options = executable.compiled->program.options;
  xla::DeviceAssignmentProto proto;
  if (!executable.portable) {
    std::vector<int> ids;
    for (const PJRT_Device* device : executable.all_devices) ids.push_back(device->description->id);
    proto = AssignmentProto(options, ids);
  }
  auto* const held = new PJRT_DeviceAssignmentSerialized{SerializedMessage(proto)};
  SetText(args, &PJRT_LoadedExecutable_GetDeviceAssignment_Args::serialized_bytes,
          &PJRT_LoadedExecutable_GetDeviceAssignment_Args::serialized_bytes_size, held->bytes);
  args->serialized_device_assignment = held;
  args->serialized_device_assignment_deleter = [](PJRT_DeviceAssignmentSerialized* assignment) { delete assignment; };
  return absl::OkStatus();
}

}  // namespace hlokit::pjrt
