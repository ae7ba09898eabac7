// SPDX-License-Identifier: Apache-2.0
#include "pjrt/execution/program.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "interp/interface/evaluator_options.h"
#include "interp/program/program_passes.h"
#include "ir/builder/builder.h"
#include "ir/core/str_cat.h"
#include "ir/digest/digest.h"
#include "ir/digest/fingerprint.h"
#include "ir/graph/attribute_views.h"
#include "ir/sharding/replica_groups.h"
#include "ir/sharding/sharding.h"
#include "ir/sharding/tiling.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "parser/proto/serialize.h"
#include "parser/proto/sharding_proto.h"
#include "parser/proto/xla.pb.h"
#include "pjrt/client/topology.h"
#include "pjrt/execution/custom_partitioners.h"
#include "pjrt/execution/entry_layouts.h"
#include "pjrt/execution/memory_kinds.h"
#include "pjrt/execution/open_results.h"
#include "pjrt/values/host_array.h"

namespace hlokit::pjrt {
namespace {

absl::StatusOr<std::unique_ptr<Module>> ParseCode(std::string_view code, std::string name) {
  const auto source = std::make_shared<const SourceBuffer>(std::move(name), std::string(code));
  DiagnosticSink sink;
  std::unique_ptr<Module> module = ParseModule(source, {}, &sink);
  if (module != nullptr) VerifyModule(*module, {}, &sink);
  if (sink.has_errors() || module == nullptr) {
    const absl::Status status = sink.ToStatus(*source);
    return status.ok() ? absl::InvalidArgumentError("the program is not valid")
                       : absl::InvalidArgumentError(status.message());
  }
  return module;
}

using Groups = std::vector<std::vector<int64_t>>;

// Returns whether all groups of devices have one member.
bool AllAlone(const Groups& groups) {
  return !groups.empty() && std::all_of(groups.begin(), groups.end(), [](const auto& g) { return g.size() == 1; });
}

// Returns whether a group has device 0.
bool HasDevice(const Groups& groups) {
  return std::any_of(groups.begin(), groups.end(), [](const std::vector<int64_t>& group) {
    return std::find(group.begin(), group.end(), 0) != group.end();
  });
}

// Leaves out what collectives of a program for one device say of other devices, as XLA's compiler for the CPU does: a
// framework that was started with fewer devices than a program is for names them all. A sum over the device alone, or
// where all groups have one member, is its operand. What the device would receive from another one stays an error.
void DropAbsentDevices(Module* module) {
  Context& context = module->context();
  const ListId only = EncodeReplicaGroups(&context, ReplicaGroups::List({{0}}));
  for (const Computation c : module->computations()) {
    for (const Instruction i : c.instructions()) {
      const Opcode opcode = SynchronousOpcode(i.opcode());
      const bool gathers = opcode == Opcode::kAllGather || opcode == Opcode::kReduceScatter;
      if ((opcode == Opcode::kAllReduce || gathers) && i.has(Attr::kReplicaGroups)) {
        const absl::StatusOr<Groups> groups = ExpandReplicaGroups(context, AttrReader(i).list_id(Attr::kReplicaGroups),
                                                                  interp::EvaluatorOptions::kMaxDevices);
        if (groups.ok() && (AllAlone(*groups) || (!gathers && HasDevice(*groups)))) {
          module->SetAttr(i.id(), Attr::kReplicaGroups, only.value);
        }
      }
      if (opcode == Opcode::kCollectivePermute && i.has(Attr::kSourceTargetPairs)) {
        const absl::Span<const int64_t> list = i.list_attr(Attr::kSourceTargetPairs);
        std::vector<int64_t> kept;  // a size of 2 before each pair
        for (size_t n = 0; n + 2 < list.size(); n += 3) {
          if (list[n + 1] == 0 || list[n + 2] == 0) kept.insert(kept.end(), list.begin() + n, list.begin() + n + 3);
        }
        if (kept.size() < list.size() && !kept.empty()) {
          module->SetAttr(i.id(), Attr::kSourceTargetPairs, module->ListPayload(kept));
        }
      }
    }
  }
}

absl::Status Partition(const CompileOptions& options, std::unique_ptr<Module>* whole) {
  Module* const module = whole->get();
  module->header().replica_count = options.num_replicas;
  module->header().num_partitions = options.num_partitions;
  if (options.num_replicas == 1 && options.num_partitions == 1) DropAbsentDevices(module);
  if (options.num_partitions == 1 || !options.use_spmd_partitioning) return absl::OkStatus();
  // The options say it, whatever the text has.
  const auto list_of = [module](const std::vector<bool>& allowed) {
    const std::vector<int64_t> values(allowed.begin(), allowed.end());
    return allowed.empty() ? ListId() : module->context().lists.Intern(values);
  };
  ModuleHeader& header = module->header();
  header.allow_spmd_sharding_propagation_to_output = list_of(options.propagate_to_outputs);
  header.allow_spmd_sharding_propagation_to_parameters = list_of(options.propagate_to_parameters);
  FreeUnevenResult(options, module);
  if (absl::Status status = interp::RunPasses("spmd-propagation", /*warnings=*/nullptr, module); !status.ok()) {
    return status;
  }
  KeepOrderOfMesh(options, module);
  if (absl::Status status = RunCustomPartitioners(whole); !status.ok()) return status;
  return interp::RunPasses(StrCat("spmd-partitioner{partitions=", options.num_partitions, "},all-reduce-combiner"),
                           /*warnings=*/nullptr, whole->get());
}

// Appends the leaves of a shape as values.
absl::Status AddValues(Shape shape, std::vector<ProgramValue>* values) {
  for (const Shape leaf : Leaves(shape)) {
    ProgramValue& value = values->emplace_back();
    value.spec.type = leaf.element_type();
    if (leaf.IsToken()) continue;
    if (!leaf.IsArray() || leaf.has_unbounded_dims()) {
      return absl::UnimplementedError(StrCat("a parameter or result of the shape ", ToString(leaf)));
    }
    value.spec.dims.assign(leaf.dims().begin(), leaf.dims().end());
    for (int64_t d = 0; d < leaf.rank(); ++d) {
      if (leaf.is_dynamic(d)) value.spec.dynamic_dims.push_back(static_cast<size_t>(d));
    }
    const absl::StatusOr<int64_t> bytes = HostBytes(value.spec.type, value.spec.dims);
    if (!bytes.ok()) return bytes.status();
    value.spec.bytes = *bytes;
  }
  return absl::OkStatus();
}

// The sharding of a value of the partitioned program. Where propagation was asked to find one, and has none, the value
// is replicated.
std::string FoundSharding(const xla::OpSharding& proto) {
  return proto.type() == xla::OpSharding::UNKNOWN ? std::string() : SerializedMessage(proto);
}

// Sets the shardings of values, which are the leaves of one instruction.
absl::Status AddShardings(Instruction instruction, absl::Span<ProgramValue> values) {
  if (!instruction.has(Attr::kSharding)) return absl::OkStatus();
  xla::OpSharding proto;
  absl::Status status = WriteSharding(
      instruction.module().context(), AttrReader(instruction).list_id(Attr::kSharding),
      [](MetadataId, xla::OpMetadata*) {}, &proto);
  if (!status.ok()) return status;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool tuple = proto.type() == xla::OpSharding::TUPLE;
    if (tuple && static_cast<size_t>(proto.tuple_shardings_size()) != values.size()) return absl::OkStatus();
    values[i].sharding = FoundSharding(tuple ? proto.tuple_shardings(static_cast<int>(i)) : proto);
  }
  return absl::OkStatus();
}

// Returns the number of the leaf of parameter `number` at `index`, counted over all parameters.
std::optional<size_t> LeafOf(const Module& module, int64_t number, absl::Span<const int64_t> index) {
  size_t leaf = 0;
  for (int64_t i = 0; i < number; ++i) leaf += static_cast<size_t>(module.entry().parameter(i).shape().leaf_count());
  Shape shape = module.entry().parameter(number).shape();
  for (const int64_t element : index) {
    if (!shape.IsTuple() || element < 0 || element >= shape.tuple_size()) return std::nullopt;
    for (int64_t i = 0; i < element; ++i) leaf += static_cast<size_t>(shape.element(i).leaf_count());
    shape = shape.element(element);
  }
  return leaf;
}

// What the program reuses: parameters that are aliased with a result, and donors of the size of a result, as in XLA,
// which gives each result that is not aliased the first donor left in its memory of its size. Others stay their
// holder's.
void MarkDonatable(Program* program) {
  const Module& module = *program->module;
  const auto leaf_of = [&](int64_t parameter, ListId index) -> ProgramValue* {
    if (parameter < 0 || parameter >= module.entry().parameter_count()) return nullptr;
    const std::optional<size_t> leaf = LeafOf(module, parameter, module.context().list(index));
    return leaf && *leaf < program->parameters.size() ? &program->parameters[*leaf] : nullptr;
  };
  std::vector<bool> aliased(program->results.size(), false);
  for (const InputOutputAlias& alias : module.header().input_output_alias) {
    if (ProgramValue* const parameter = leaf_of(alias.parameter, alias.parameter_index)) parameter->donatable = true;
    const absl::Span<const int64_t> output = module.context().list(alias.output_index);
    const size_t result = output.empty() ? 0 : static_cast<size_t>(output[0]);
    if (output.size() <= 1 && result < aliased.size()) aliased[result] = true;
  }
  std::vector<ProgramValue*> donors;
  for (const BufferDonor& donor : module.header().buffer_donor) {
    ProgramValue* const parameter = leaf_of(donor.parameter, donor.parameter_index);
    if (parameter != nullptr && !parameter->donatable) donors.push_back(parameter);
  }
  for (size_t r = 0; r < program->results.size(); ++r) {
    if (aliased[r]) continue;
    const ProgramValue& result = program->results[r];
    const auto fits = std::find_if(donors.begin(), donors.end(), [&](const ProgramValue* donor) {
      return donor->spec.bytes == result.spec.bytes && donor->memory_kind == result.memory_kind;
    });
    if (fits == donors.end()) continue;
    (*fits)->donatable = true;
    donors.erase(fits);
  }
}

absl::StatusOr<Program> Describe(std::unique_ptr<Module> module, CompileOptions options) {
  Program program;
  program.options = std::move(options);
  program.name = std::string(module->name());
  const Computation entry = module->entry();
  for (int64_t i = 0; i < entry.parameter_count(); ++i) {
    const size_t begin = program.parameters.size();
    absl::Status status = AddValues(entry.parameter(i).shape(), &program.parameters);
    if (status.ok()) status = AddShardings(entry.parameter(i), absl::MakeSpan(program.parameters).subspan(begin));
    if (!status.ok()) return status;
  }
  absl::Status status = AddValues(entry.root().shape(), &program.results);
  if (status.ok()) status = AddShardings(entry.root(), absl::MakeSpan(program.results));
  if (!status.ok()) return status;
  program.module = std::move(module);
  ReadMemoryKinds(*program.module, absl::MakeSpan(program.parameters), absl::MakeSpan(program.results));
  ReadLayouts(*program.module, absl::MakeSpan(program.parameters), absl::MakeSpan(program.results));
  MarkDonatable(&program);
  program.fingerprint = ToString(DigestOf(StrCat(ToString(Fingerprint(*program.module, FingerprintOptions::All())),
                                                 "\n", PlatformVersion(), "\n", program.options.serialized)));
  return program;
}

}  // namespace

absl::StatusOr<Program> ReadProgram(std::string_view code, std::string_view format, CompileOptions options,
                                    bool keep_received) {
  if (format != "mlir" && format != "hlo" && format != "hlo_with_config") {
    return absl::InvalidArgumentError(StrCat("Unknown program format '", format, "'."));
  }
  absl::StatusOr<std::unique_ptr<Module>> module = ParseCode(code, StrCat("<", format, ">"));
  if (!module.ok()) return module.status();
  if (!(*module)->entry().valid()) return absl::InvalidArgumentError("the program has no entry computation");
  if (absl::Status status = MarkMemoryKinds(module->get()); !status.ok()) return status;
  if (absl::Status status = MarkLayouts(module->get()); !status.ok()) return status;
  std::unique_ptr<Module> received;
  if (keep_received || !options.dump_to.empty()) received = std::make_unique<Module>((*module)->Clone());
  if (absl::Status status = Partition(options, &*module); !status.ok()) return status;
  absl::StatusOr<Program> program = Describe(*std::move(module), std::move(options));
  if (program.ok()) program->received = std::move(received);
  return program;
}

namespace {

constexpr std::string_view kMagic = "hlokit executable 1\n";

}  // namespace

std::string SerializeProgram(const Program& program) {
  xla::ExecutableAndOptionsProto proto;
  proto.set_serialized_executable(
      StrCat(kMagic, PlatformVersion(), "\n", ToString(*program.module, PrintOptions::Lossless())));
  proto.mutable_compile_options()->ParseFromString(program.options.serialized);
  proto.set_pjrt_client_name("hlokit");
  return SerializedMessage(proto);
}

absl::StatusOr<Program> DeserializeProgram(std::string_view serialized, std::optional<std::string_view> options) {
  xla::ExecutableAndOptionsProto proto;
  const bool parsed = serialized.size() <= static_cast<size_t>(INT32_MAX) &&
                      proto.ParseFromArray(serialized.data(), static_cast<int>(serialized.size()));
  const std::string_view text = proto.serialized_executable();
  const std::string version = StrCat(kMagic, PlatformVersion(), "\n");
  if (!parsed || !text.starts_with(kMagic)) {
    return absl::InvalidArgumentError("not an executable that hlokit serialized");
  }
  if (!text.starts_with(version)) {
    return absl::FailedPreconditionError(
        StrCat("the executable is by another version of hlokit; this is ", PlatformVersion()));
  }
  absl::StatusOr<CompileOptions> read =
      ReadCompileOptions(options ? std::string(*options) : SerializedMessage(proto.compile_options()));
  if (!read.ok()) return read.status();
  absl::StatusOr<std::unique_ptr<Module>> module = ParseCode(text.substr(version.size()), "<serialized executable>");
  if (!module.ok()) return module.status();
  const ModuleHeader& header = (*module)->header();
  if (header.replica_count != read->num_replicas || header.num_partitions != read->num_partitions) {
    return absl::InvalidArgumentError(StrCat("the executable is for ", header.replica_count, " replicas of ",
                                             header.num_partitions, " partitions, the options are for ",
                                             read->num_replicas, " of ", read->num_partitions));
  }
  return Describe(*std::move(module), *std::move(read));
}

}  // namespace hlokit::pjrt
