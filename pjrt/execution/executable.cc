// SPDX-License-Identifier: Apache-2.0
#include "pjrt/execution/executable.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "interp/dynamic/explicit_sizes.h"
#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "parser/proto/module_writer.h"
#include "parser/proto/serialize.h"
#include "parser/proto/xla.pb.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/operand_costs.h"
#include "pjrt/client/program_file.h"
#include "pjrt/execution/extensions.h"
#include "pjrt/execution/optimized_program.h"
#include "pjrt/ffi/ffi_handlers.h"
#include "pjrt/values/arguments.h"
#include "pjrt/values/buffer_type.h"
#include "pjrt/values/functions.h"

namespace hlokit::pjrt {

CompiledProgram::CompiledProgram(Program program_in) : program(std::move(program_in)) {
  for (const ProgramValue& result : program.results) {
    result_types.push_back(BufferTypeOf(result.spec.type));
    result_dims.insert(result_dims.end(), result.spec.dims.begin(), result.spec.dims.end());
    result_ranks.push_back(result.spec.dims.size());
    result_layouts.push_back(SharedLayout(result.spec));
    result_memory_kinds.push_back(kMemoryKinds[result.memory_kind]);
    result_memory_kind_sizes.push_back(std::strlen(kMemoryKinds[result.memory_kind]));
    result_shardings.push_back(result.sharding.data());
    result_sharding_sizes.push_back(result.sharding.size());
    result_sizes += result.spec.dynamic_dims.size();
  }
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    const ProgramValue& parameter = program.parameters[i];
    parameter_layouts.push_back(SharedLayout(parameter.spec));
    parameter_memory_kinds.push_back(kMemoryKinds[parameter.memory_kind]);
    parameter_memory_kind_sizes.push_back(std::strlen(kMemoryKinds[parameter.memory_kind]));
    parameter_shardings.push_back(parameter.sharding.data());
    parameter_sharding_sizes.push_back(parameter.sharding.size());
    parameter_sizes += parameter.spec.dynamic_dims.size();
    if (parameter.donatable) donatable.push_back(static_cast<int64_t>(i));
  }
}

const Module& CompiledProgram::ShownModule() const {
  return loaded != nullptr && loaded_as_given ? loaded->module() : *program.module;
}

const SimulatedCosts* CompiledProgram::Simulated() const {
  std::call_once(simulated_once_, [this] {
    if (simulated_device.empty()) return;
    absl::StatusOr<SimulatedCosts> costs = SimulateCosts(simulated_device, *program.module);
    if (costs.ok()) simulated_ = *std::move(costs);
  });
  return simulated_ ? &*simulated_ : nullptr;
}

const NamedValues& CompiledProgram::CostProperties() const {
  const SimulatedCosts* const simulated = Simulated();
  std::lock_guard<std::mutex> lock(mutex_);
  if (cost_ != nullptr) return *cost_;
  const Module& module = simulated != nullptr ? *simulated->compiled : ShownModule();
  const CostAnalysis costs(module);
  const Cost& cost = costs.OfModule();
  cost_ = std::make_unique<NamedValues>();
  const auto add = [this](std::string name, auto value) { cost_->Add(std::move(name), static_cast<float>(value)); };
  add("flops", cost.flops);
  add("transcendentals", cost.transcendentals);
  add("bytes accessed", cost.bytes());
  int64_t number = 0;
  for (const OperandCost& operand : OperandCosts(costs, module)) {
    add(StrCat("bytes accessed", number, "{}"), operand.bytes);
    add(StrCat("utilization", number++, "{}"), operand.utilization);
  }
  add("bytes accessedout{}", cost.bytes_written);
  if (simulated != nullptr) add("optimal_seconds", simulated->step_seconds);
  return *cost_;
}

absl::StatusOr<const std::string*> CompiledProgram::OptimizedProgram() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!optimized_) {
    optimized_ = OptimizedProgramBytes(ShownModule(), program);
  }
  if (!optimized_->ok()) return optimized_->status();
  return &**optimized_;
}

namespace {

std::string SimulatedDeviceOf(const PJRT_TopologyDescription& topology) {
  return topology.device.starts_with("cpu") ? "" : topology.device;
}

// Writes a stage of a program into the directories that the options of the client and of the program name.
absl::Status DumpTo(const std::string& folder, int64_t number, std::string_view what, const Module& module,
                    bool as_text, bool as_proto) {
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;  // the file reports it
  std::filesystem::create_directories(folder, error);
  const std::string stem = StrCat(folder, "/", ProgramFileStem(number, module), ".", what);
  absl::Status status;
  if (as_text) status = WriteProgramFile(StrCat(stem, ".txt"), ToString(module, PrintOptions::Lossless()));
  if (!status.ok() || !as_proto) return status;
  xla::HloProto proto;
  status = WriteModuleProto(module, {}, proto.mutable_hlo_module());
  return status.ok() ? WriteProgramFile(StrCat(stem, ".hlo.pb"), SerializedMessage(proto)) : status;
}

absl::Status Dump(const PJRT_Client* client, const CompileOptions& options, int64_t number, std::string_view what,
                  const Module& module) {
  absl::Status status = DumpTo(client->config.dump_to, number, what, module, /*as_text=*/true, /*as_proto=*/false);
  if (!status.ok()) return status;
  return DumpTo(options.dump_to, number, what, module, options.dump_as_text || !options.dump_as_proto,
                options.dump_as_proto);
}

// Writes the program before optimization: as it was received, and what one partition of it is.
absl::Status DumpBefore(const PJRT_Client* client, int64_t number, const Program& program) {
  const bool kept = program.received != nullptr;  // not of a program that was stored after it was partitioned
  absl::Status status =
      Dump(client, program.options, number, "before_optimizations", kept ? *program.received : *program.module);
  if (!status.ok() || !kept || program.options.num_partitions == 1) return status;
  return Dump(client, program.options, number, "after_partitioning", *program.module);
}

// Returns the devices of a program: those of its options, or the first ones.
absl::StatusOr<std::vector<PJRT_Device*>> DevicesOf(PJRT_Client* client, const CompileOptions& options) {
  const int64_t count = options.num_replicas * options.num_partitions;
  std::vector<int> ids = options.devices;
  if (ids.empty() && options.device_ordinal >= 0 && count == 1) ids = {static_cast<int>(options.device_ordinal)};
  // One device stands for any of this process.
  if (ids.empty() && count == 1) ids = {client->addressable_devices.front()->description->id};
  for (int64_t i = 0; ids.size() < static_cast<size_t>(count); ++i) ids.push_back(static_cast<int>(i));
  std::vector<PJRT_Device*> devices;
  for (const int id : ids) {
    PJRT_Device* const device = client->FindDevice(id);
    if (device == nullptr) {
      return absl::InvalidArgumentError(StrCat("the program is for ", count, " devices, among them ", id,
                                               "; the client has ", static_cast<int64_t>(client->devices.size())));
    }
    devices.push_back(device);
  }
  return devices;
}

// Returns true for a program of one device with host callbacks that computes little beside them.
bool IsSmallWithCallbacks(const Program& program) {
  constexpr double kSmallFlops = 1000;  // of XLA's CPU client
  const CompileOptions& options = program.options;
  return options.num_replicas * options.num_partitions == 1 && HasTypedCalls(*program.module) &&
         static_cast<double>(CostAnalysis(*program.module).OfModule().flops) < kSmallFlops;
}

// Returns true for a program of one device that takes less time than a thread to start, which no run has shown yet:
// XLA's CPU client runs these before its call returns, and metrics of frameworks count on that.
bool IsShort(const Program& program) {
  constexpr double kShortFlops = 1000;  // of XLA's CPU client
  constexpr double kShortBytes = 1 << 16;
  constexpr size_t kMaxInstructions = 256;
  const Module& module = *program.module;
  if (program.options.num_replicas * program.options.num_partitions != 1) return false;
  if (module.instruction_id_bound() > kMaxInstructions) return false;
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      if (i.opcode() == Opcode::kWhile || i.opcode() == Opcode::kCustomCall) return false;
    }
  }
  const Cost cost = CostAnalysis(module).OfModule();
  return static_cast<double>(cost.flops) < kShortFlops && static_cast<double>(cost.bytes()) < kShortBytes;
}

}  // namespace

absl::StatusOr<PJRT_LoadedExecutable*> Load(PJRT_Client* client, Program program) {
  const CompileOptions& options = program.options;
  absl::StatusOr<std::vector<PJRT_Device*>> devices = DevicesOf(client, options);
  if (!devices.ok()) return devices.status();
  const int64_t number = ++client->programs_compiled;
  if (absl::Status status = DumpBefore(client, number, program); !status.ok()) return status;
  runtime::DeviceAssignment assignment;
  assignment.num_replicas = options.num_replicas;
  assignment.num_partitions = options.num_partitions;
  if (!options.portable) {
    for (const PJRT_Device* device : *devices) {
      assignment.devices.push_back(device->runtime == nullptr ? -1 : device->runtime->ordinal());
    }
    assignment.world = client->WorldOf(*devices);
  }
  std::shared_ptr<HostCallbacks> callbacks;
  const bool transfers = HasHostTransfers(*program.module);
  if (transfers || HasTypedCalls(*program.module)) {
    const std::vector<PJRT_Device*>& of = options.portable ? client->addressable_devices : *devices;
    CallbackLimits limits;
    if (client->config.callback_seconds > 0) limits.wait = static_cast<double>(client->config.callback_seconds);
    if (client->config.max_seconds > 0) limits.run = static_cast<double>(client->config.max_seconds);
    callbacks =
        std::make_shared<HostCallbacks>(std::vector<const PJRT_Device*>(of.begin(), of.end()), limits, transfers);
  }
  auto module = std::make_unique<Module>(program.module->Clone());
  const absl::StatusOr<bool> with_sizes = interp::MakeSizesExplicit(module.get());
  if (!with_sizes.ok()) return with_sizes.status();
  if (callbacks != nullptr) {
    absl::StatusOr<std::vector<std::shared_ptr<FfiCall>>> calls =
        InstantiateFfiCalls(client->config.platform, module.get());
    if (!calls.ok()) return calls.status();
    callbacks->SetCalls(*std::move(calls));
  }
  absl::StatusOr<std::shared_ptr<runtime::Executable>> compiled = [&] {
    const std::shared_lock<std::shared_mutex> lock(FfiHandlersMutex());
    return client->runtime->Compile(std::move(module), std::move(assignment), callbacks);
  }();
  if (!compiled.ok()) return compiled.status();
  if (absl::Status status = Dump(client, program.options, number, "after_optimizations", (*compiled)->module());
      !status.ok()) {
    return status;
  }
  auto described = std::make_shared<CompiledProgram>(std::move(program));
  described->simulated_device = SimulatedDeviceOf(*client->topology);
  const bool fits =
      (*compiled)->parameter_shapes().size() == described->program.parameters.size() + described->parameter_sizes &&
      (*compiled)->result_shapes().size() == described->program.results.size() + described->result_sizes;
  if (!fits) return absl::InternalError("compilation changed the number of parameters or results");
  auto loaded = std::make_unique<PJRT_LoadedExecutable>();
  if (client->simulation_log != nullptr) {
    const absl::StatusOr<size_t> logged = client->simulation_log->AddProgram(*described->program.module);
    if (!logged.ok()) return logged.status();
    loaded->logged = *logged;
  }
  loaded->client = client;
  loaded->callbacks = std::move(callbacks);
  loaded->portable = described->program.options.portable;
  loaded->waits = IsSmallWithCallbacks(described->program);
  loaded->all_devices = *std::move(devices);
  const int64_t partitions = described->program.options.num_partitions;
  for (size_t i = 0; i < loaded->all_devices.size(); ++i) {
    if (loaded->all_devices[i]->runtime == nullptr) continue;
    loaded->devices.push_back(loaded->all_devices[i]);
    const auto number = static_cast<int64_t>(i);
    loaded->logical_ids.push_back({static_cast<int>(number / partitions), static_cast<int>(number % partitions)});
  }
  if (IsShort(described->program)) (*compiled)->set_expected_ns(0);
  described->loaded = *compiled;
  described->loaded_as_given = described->parameter_sizes + described->result_sizes == 0;
  loaded->compiled = std::move(described);
  loaded->runtime = *std::move(compiled);
  return loaded.release();
}

namespace {

absl::StatusOr<Program> ReadCallersProgram(const PJRT_Program* program, const char* options, size_t options_size,
                                           bool keep_received) {
  if (program == nullptr || (program->code == nullptr && program->code_size != 0)) {
    return absl::InvalidArgumentError("the program is null");
  }
  absl::StatusOr<CompileOptions> read = ReadCompileOptions(TextOf(options, options_size));
  if (!read.ok()) return read.status();
  return ReadProgram(TextOf(program->code, program->code_size), TextOf(program->format, program->format_size),
                     *std::move(read), keep_received);
}

}  // namespace

absl::Status Client_Compile(PJRT_Client_Compile_Args* args) {
  absl::StatusOr<Program> program = ReadCallersProgram(args->program, args->compile_options, args->compile_options_size,
                                                       !args->client->config.dump_to.empty());
  if (!program.ok()) return program.status();
  const absl::StatusOr<PJRT_LoadedExecutable*> loaded = Load(args->client, *std::move(program));
  if (!loaded.ok()) return loaded.status();
  args->executable = *loaded;
  return absl::OkStatus();
}

absl::Status Compile(PJRT_Compile_Args* args) {
  absl::StatusOr<Program> program =
      ReadCallersProgram(args->program, args->compile_options, args->compile_options_size, /*keep_received=*/false);
  if (!program.ok()) return program.status();
  auto compiled = std::make_shared<CompiledProgram>(*std::move(program));
  if (args->topology != nullptr) compiled->simulated_device = SimulatedDeviceOf(*args->topology);
  args->executable = new PJRT_Executable{std::move(compiled)};
  return absl::OkStatus();
}

absl::Status Client_Load(PJRT_Client_Load_Args* args) {
  if (args->executable == nullptr) return absl::InvalidArgumentError("the executable is null");
  const std::string stored = SerializeProgram(args->executable->compiled->program);
  std::optional<std::string_view> options;
  if (args->compile_options_size != 0) options = TextOf(args->compile_options, args->compile_options_size);
  absl::StatusOr<Program> program = DeserializeProgram(stored, options);
  if (!program.ok()) return program.status();
  const absl::StatusOr<PJRT_LoadedExecutable*> loaded = Load(args->client, *std::move(program));
  if (!loaded.ok()) return loaded.status();
  args->loaded_executable = *loaded;
  return absl::OkStatus();
}

absl::Status Executable_DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args* args) {
  using Args = PJRT_Executable_DeserializeAndLoad_Args;
  std::optional<std::string_view> options;
  const char* const given = FieldOr(*args, &Args::overridden_serialized_compile_options, {});
  const size_t size = FieldOr(*args, &Args::overridden_serialized_compile_options_size, {});
  if (given != nullptr && size != 0) options = TextOf(given, size);
  absl::StatusOr<Program> program =
      DeserializeProgram(TextOf(args->serialized_executable, args->serialized_executable_size), options);
  if (!program.ok()) return program.status();
  const absl::StatusOr<PJRT_LoadedExecutable*> loaded = Load(args->client, *std::move(program));
  if (!loaded.ok()) return loaded.status();
  args->loaded_executable = *loaded;
  return absl::OkStatus();
}

absl::Status Executable_Destroy(PJRT_Executable_Destroy_Args* args) {
  delete args->executable;
  return absl::OkStatus();
}

absl::Status LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args* args) {
  delete args->executable;
  return absl::OkStatus();
}

absl::Status LoadedExecutable_GetExecutable(PJRT_LoadedExecutable_GetExecutable_Args* args) {
  args->executable = new PJRT_Executable{args->loaded_executable->compiled};
  return absl::OkStatus();
}

absl::Status LoadedExecutable_AddressableDevices(PJRT_LoadedExecutable_AddressableDevices_Args* args) {
  args->addressable_devices = args->executable->devices.data();
  args->num_addressable_devices = args->executable->devices.size();
  return absl::OkStatus();
}

absl::Status LoadedExecutable_AddressableDeviceLogicalIds(
    PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args* args) {
  args->addressable_device_logical_ids = args->executable->logical_ids.data();
  args->num_addressable_device_logical_ids = args->executable->logical_ids.size();
  return absl::OkStatus();
}

absl::Status LoadedExecutable_Delete(PJRT_LoadedExecutable_Delete_Args* args) {
  args->executable->deleted = true;
  return absl::OkStatus();
}

absl::Status LoadedExecutable_IsDeleted(PJRT_LoadedExecutable_IsDeleted_Args* args) {
  args->is_deleted = args->executable->deleted;
  return absl::OkStatus();
}

absl::Status LoadedExecutable_Fingerprint(PJRT_LoadedExecutable_Fingerprint_Args* args) {
  SetText(args, &PJRT_LoadedExecutable_Fingerprint_Args::executable_fingerprint,
          &PJRT_LoadedExecutable_Fingerprint_Args::executable_fingerprint_size,
          args->executable->compiled->program.fingerprint);
  return absl::OkStatus();
}

}  // namespace hlokit::pjrt
