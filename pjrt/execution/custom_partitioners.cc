// SPDX-License-Identifier: Apache-2.0
// Idea: the computations of each device's program join the module as messages, whose numbers are shifted, and a call of
// the program between conversions to the part of a device and back stands for the custom-call, as for code that the
// user has written for one device.
#include "pjrt/execution/custom_partitioners.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "parser/proto/header_proto.h"
#include "parser/proto/module_writer.h"
#include "parser/proto/serialize.h"
#include "parser/proto/shape_proto.h"
#include "parser/proto/sharding_proto.h"
#include "parser/proto/xla.pb.h"
#include "pjrt/values/arguments.h"
#include "pjrt/values/error.h"

namespace hlokit::pjrt {
namespace {

// Owns the callbacks, which a program that is being compiled may still use when others replace them.
using Partitioner = std::shared_ptr<JAX_CustomCallPartitioner_Callbacks>;

struct Registry {
  std::mutex mutex;
  std::map<std::string, Partitioner, std::less<>> partitioners;
};
Registry& PartitionerRegistry() {
  static auto* const registry = new Registry();
  return *registry;
}

Partitioner FindPartitioner(std::string_view target) {
  Registry& registry = PartitionerRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const auto at = registry.partitioners.find(target);
  return at == registry.partitioners.end() ? nullptr : at->second;
}

std::string_view TextIn(const JAX_CustomCallPartitioner_string& text) { return TextOf(text.data, text.size); }

// What a partitioner made of one custom-call.
struct DividedCall {
  std::unique_ptr<Module> program;
  std::vector<xla::OpSharding> arguments;
  xla::OpSharding result;
};

absl::StatusOr<xla::OpSharding> ShardingIn(const JAX_CustomCallPartitioner_string& text) {
  xla::OpSharding sharding;
  if (text.size > static_cast<size_t>(INT32_MAX) || !sharding.ParseFromArray(text.data, static_cast<int>(text.size))) {
    return absl::InternalError("a partitioner returned a sharding that is no OpSharding");
  }
  return sharding;
}

// Strings of arguments, which live as long as this.
class ArgumentText {
 public:
  JAX_CustomCallPartitioner_string Keep(std::string text) {
    const std::string& kept = *kept_.emplace_back(std::make_unique<std::string>(std::move(text)));
    return {kept.data(), kept.size()};
  }
  absl::StatusOr<JAX_CustomCallPartitioner_aval> Describe(Instruction i) {
    JAX_CustomCallPartitioner_aval value = {};
    xla::ShapeProto shape;
    if (absl::Status status = ShapeWriter().Write(i.shape(), &shape); !status.ok()) return status;
    value.shape = Keep(SerializedMessage(shape));
    value.has_sharding = true;
    xla::OpSharding sharding;  // replicated
    if (i.has(Attr::kSharding)) {
      const ListId list = AttrReader(i).list_id(Attr::kSharding);
      const absl::Status status = WriteSharding(
          i.module().context(), list, [](MetadataId, xla::OpMetadata*) {}, &sharding);
      if (!status.ok()) return status;
    } else if (i.shape().IsTuple()) {
      sharding.set_type(xla::OpSharding::TUPLE);
      for (int64_t k = 0; k < i.shape().leaf_count(); ++k) sharding.add_tuple_shardings();
    }
    value.sharding = Keep(SerializedMessage(sharding));
    return value;
  }

 private:
  std::vector<std::unique_ptr<std::string>> kept_;
};

absl::StatusOr<DividedCall> ResultsOf(const JAX_CustomCallPartitioner_Partition_Args& args) {
  if (args.header.has_error) {
    return StatusOf(args.header.code, args.header.error_msg.data, args.header.error_msg.size);
  }
  DividedCall divided;
  for (size_t k = 0; k < args.num_args; ++k) {
    absl::StatusOr<xla::OpSharding> sharding = ShardingIn(args.args_sharding[k]);
    if (!sharding.ok()) return sharding.status();
    divided.arguments.push_back(*std::move(sharding));
  }
  absl::StatusOr<xla::OpSharding> result = ShardingIn(args.result_sharding);
  if (!result.ok()) return result.status();
  divided.result = *std::move(result);
  const auto source =
      std::make_shared<const SourceBuffer>("<custom partitioning>", std::string(TextIn(args.mlir_module)));
  DiagnosticSink sink;
  divided.program = ParseModule(source, {}, &sink);
  if (divided.program != nullptr) VerifyModule(*divided.program, {}, &sink);
  if (sink.has_errors() || divided.program == nullptr) {
    const absl::Status status = sink.ToStatus(*source);
    return absl::InvalidArgumentError(status.ok() ? "a partitioner returned a program that is not valid"
                                                  : status.message());
  }
  return divided;
}

absl::StatusOr<DividedCall> Divide(JAX_CustomCallPartitioner_Callbacks* callbacks, Instruction call) {
  ArgumentText text;
  std::vector<JAX_CustomCallPartitioner_aval> operands;
  for (int64_t k = 0; k < call.operand_count(); ++k) {
    absl::StatusOr<JAX_CustomCallPartitioner_aval> operand = text.Describe(call.operand(k));
    if (!operand.ok()) return operand.status();
    operands.push_back(*operand);
  }
  absl::StatusOr<JAX_CustomCallPartitioner_aval> result = text.Describe(call);
  if (!result.ok()) return result.status();
  JAX_CustomCallPartitioner_Partition_Args args = {};
  args.num_args = operands.size();
  args.op_args = operands.data();
  args.op_result = *result;
  args.backend_config = text.Keep(std::string(call.string_attr(Attr::kBackendConfig)));
  callbacks->partition(callbacks, &args);
  absl::StatusOr<DividedCall> divided = ResultsOf(args);
  if (args.header.cleanup_fn != nullptr) args.header.cleanup_fn(args.header.data);
  return divided;
}

void SetManual(const xla::ShapeProto& shape, xla::OpSharding* sharding) {
  sharding->Clear();
  if (shape.element_type() != xla::TUPLE) {
    sharding->set_type(xla::OpSharding::MANUAL);
    return;
  }
  sharding->set_type(xla::OpSharding::TUPLE);
  const std::function<void(const xla::ShapeProto&)> add = [&](const xla::ShapeProto& of) {
    if (of.element_type() != xla::TUPLE) {
      sharding->add_tuple_shardings()->set_type(xla::OpSharding::MANUAL);
      return;
    }
    for (const xla::ShapeProto& element : of.tuple_shapes()) add(element);
  };
  add(shape);
}

// Adds the computations of `part`, whose names begin with `prefix` then, and whose channels are new.
void Join(xla::HloModuleProto part, const std::string& prefix, xla::HloModuleProto* whole) {
  int64_t computations = 0, instructions = 0, channels = 0;
  for (const xla::HloComputationProto& c : whole->computations()) {
    computations = std::max<int64_t>(computations, c.id() + 1);
    for (const xla::HloInstructionProto& i : c.instructions()) {
      instructions = std::max<int64_t>(instructions, i.id() + 1);
      channels = std::max<int64_t>(channels, i.channel_id());
    }
  }
  xla::HloModuleProto joined = *whole;
  joined.clear_computations();
  for (xla::HloComputationProto& c : *part.mutable_computations()) {
    c.set_id(c.id() + computations);
    c.set_name(prefix + c.name());
    c.set_root_id(c.root_id() + instructions);
    for (xla::HloInstructionProto& i : *c.mutable_instructions()) {
      i.set_id(i.id() + instructions);
      i.clear_metadata();
      if (i.channel_id() > 0) i.set_channel_id(i.channel_id() + channels);
      for (int64_t& id : *i.mutable_operand_ids()) id += instructions;
      for (int64_t& id : *i.mutable_control_predecessor_ids()) id += instructions;
      for (int64_t& id : *i.mutable_called_computation_ids()) id += computations;
      SetManual(i.shape(), i.mutable_sharding());
    }
    *joined.add_computations() = std::move(c);
  }
  // Callers follow.
  for (xla::HloComputationProto& c : *whole->mutable_computations()) *joined.add_computations() = std::move(c);
  *whole = std::move(joined);
}

std::vector<InstructionId> CallsWithPartitioner(const Module& module) {
  std::vector<InstructionId> calls;
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      if (i.opcode() == Opcode::kCustomCall && FindPartitioner(i.string_attr(Attr::kCustomCallTarget)) != nullptr) {
        calls.push_back(i.id());
      }
    }
  }
  return calls;
}

// Writes the code that stands for a custom-call.
class CallWriter {
 public:
  CallWriter(Module* module, InstructionId call) : module_(*module), call_(call), b_(module, call) {}

  absl::Status Replace(ComputationId callee, const DividedCall& divided) {
    const Instruction call = module_.instruction(call_);
    const Computation program = module_.computation(callee);
    if (program.parameter_count() != call.operand_count()) {
      return absl::InvalidArgumentError("a partitioner returned a program with another number of parameters");
    }
    std::vector<InstructionId> operands, parts;
    for (int64_t k = 0; k < call.operand_count(); ++k) operands.push_back(call.operand(k).id());
    for (size_t k = 0; k < operands.size(); ++k) {
      const InstructionId sharded = Convert("Sharding", operands[k], b_.shape_of(operands[k]), divided.arguments[k]);
      const Shape part = module_.computation(callee).parameter(static_cast<int64_t>(k)).shape();
      parts.push_back(Convert("SPMDFullToShardShape", sharded, part, Manual()));
    }
    const Shape local = module_.computation(callee).root().shape(), whole = module_.instruction(call_).shape();
    const InstructionId called = b_.Make(Opcode::kCall, local, parts, {{Attr::kToApply, callee.value}});
    std::vector<InstructionId> results;
    const bool tuple = whole.IsTuple();
    if (tuple != local.IsTuple() || (tuple && whole.tuple_size() != local.tuple_size())) {
      return absl::InvalidArgumentError("a partitioner returned a program with other results");
    }
    if (!tuple) {
      Mark(called, Manual());
      results.push_back(Convert("SPMDShardToFullShape", called, whole, divided.result));
    } else {
      for (int64_t k = 0; k < whole.tuple_size(); ++k) {
        const InstructionId element = b_.MakeElement(called, k);
        Mark(element, Manual());
        const bool each = divided.result.tuple_shardings_size() == whole.tuple_size();
        results.push_back(Convert("SPMDShardToFullShape", element, whole.element(k),
                                  each ? divided.result.tuple_shardings(static_cast<int>(k)) : divided.result));
      }
    }
    if (!status_.ok()) return status_;
    const InstructionId result = tuple ? b_.MakeTuple(results) : results[0];
    const Instruction before = module_.instruction(call_);
    const std::optional<uint32_t> wanted = before.payload(Attr::kSharding);
    InstructionId placed = result;
    if (wanted && !tuple) {
      placed = b_.Make(Opcode::kCustomCall, whole, {result}, {b_.String(Attr::kCustomCallTarget, "Sharding")});
      module_.SetAttr(placed, Attr::kSharding, *wanted);
    } else if (wanted) {
      module_.SetAttr(placed, Attr::kSharding, *wanted);
    }
    module_.ReplaceAllUses(call_, placed);
    module_.Erase(call_);
    return absl::OkStatus();
  }

 private:
  static xla::OpSharding Manual() {
    xla::OpSharding manual;
    manual.set_type(xla::OpSharding::MANUAL);
    return manual;
  }
  void Mark(InstructionId id, const xla::OpSharding& sharding) {
    const absl::StatusOr<ListId> list = ReadSharding(
        sharding, [](const xla::OpMetadata&) { return MetadataId(); }, &module_.context());
    if (list.ok()) {
      module_.SetAttr(id, Attr::kSharding, list->value);
    } else if (status_.ok()) {
      status_ = list.status();
    }
  }
  InstructionId Convert(std::string_view target, InstructionId operand, Shape shape, const xla::OpSharding& sharding) {
    const InstructionId made =
        b_.Make(Opcode::kCustomCall, shape, {operand}, {b_.String(Attr::kCustomCallTarget, target)});
    Mark(made, sharding);
    return made;
  }

  Module& module_;
  const InstructionId call_;
  Builder b_;
  absl::Status status_;
};

}  // namespace

absl::Status RegisterCustomPartitioner(PJRT_Register_Custom_Partitioner_Args* args) {
  if (args->name == nullptr) return absl::InvalidArgumentError("the name of the custom-call is null");
  Partitioner added(args->callbacks, [](JAX_CustomCallPartitioner_Callbacks* callbacks) {
    if (callbacks->dtor != nullptr) callbacks->dtor(callbacks);
  });
  Registry& registry = PartitionerRegistry();
  {
    const std::lock_guard<std::mutex> lock(registry.mutex);
    registry.partitioners[std::string(TextOf(args->name, args->name_size))].swap(added);
  }
  return absl::OkStatus();  // the one before is destroyed without the lock
}

// Devices compute such custom-calls whole: their values are the same.
absl::Status RegisterBatchPartitionable(PJRT_Register_Batch_Partitionable_Args*) { return absl::OkStatus(); }

absl::Status RunCustomPartitioners(std::unique_ptr<Module>* module) {
  const std::vector<InstructionId> calls = CallsWithPartitioner(**module);
  if (calls.empty()) return absl::OkStatus();
  std::vector<DividedCall> divided;
  xla::HloModuleProtoWithConfig whole;
  if (absl::Status s = WriteModuleProto(**module, {}, whole.mutable_hlo_module()); !s.ok()) return s;
  if (absl::Status s = WriteConfigProto(**module, whole.mutable_config()); !s.ok()) return s;
  std::vector<std::string> names;
  for (const InstructionId id : calls) {
    const Instruction call = (*module)->instruction(id);
    const Partitioner partitioner = FindPartitioner(call.string_attr(Attr::kCustomCallTarget));
    absl::StatusOr<DividedCall> one = Divide(partitioner.get(), call);
    if (!one.ok()) return one.status();
    xla::HloModuleProto part;
    if (absl::Status s = WriteModuleProto(*one->program, {}, &part); !s.ok()) return s;
    const std::string prefix = StrCat("partitioned", static_cast<int64_t>(divided.size()), ".");
    names.push_back(prefix + std::string(one->program->entry().name()));
    Join(std::move(part), prefix, whole.mutable_hlo_module());
    divided.push_back(*std::move(one));
  }
  const auto source = std::make_shared<const SourceBuffer>("<custom partitioning>", SerializedMessage(whole));
  DiagnosticSink sink;
  std::unique_ptr<Module> joined = ParseModule(source, {}, &sink);
  if (joined == nullptr || sink.has_errors()) return sink.ToStatus(*source);
  joined->header().replica_count = (*module)->header().replica_count;
  joined->header().num_partitions = (*module)->header().num_partitions;
  const std::vector<InstructionId> again = CallsWithPartitioner(*joined);
  if (again.size() != calls.size()) {
    return absl::InvalidArgumentError("the program of a partitioner has a custom-call with a partitioner");
  }
  for (size_t k = 0; k < again.size(); ++k) {
    ComputationId callee;
    for (const Computation c : joined->computations()) {
      if (c.name() == names[k]) callee = c.id();
    }
    if (!callee.valid()) return absl::InternalError("the program of a partitioner is lost");
    if (absl::Status s = CallWriter(joined.get(), again[k]).Replace(callee, divided[k]); !s.ok()) return s;
  }
  *module = std::move(joined);
  return absl::OkStatus();
}

}  // namespace hlokit::pjrt
