// SPDX-License-Identifier: Apache-2.0
#include "check/arguments/snapshot.h"

#include <utility>

#include "interp/program/sharded_arrays.h"
#include "ir/core/str_cat.h"
#include "ir/sharding/unpartitioned.h"
#include "ir/types/sized_shape.h"
#include "parser/proto/literal_proto.h"
#include "parser/proto/module_writer.h"
#include "parser/text/byte_limit.h"

namespace hlokit::interp {
namespace {

// Appends the leaves of a value, which are moved out of it.
void AppendLeaves(Literal value, std::vector<Literal>* leaves) {
  std::vector<Literal> open;
  open.push_back(std::move(value));
  while (!open.empty()) {
    Literal top = std::move(open.back());
    open.pop_back();
    if (!top.shape().IsTuple()) {
      leaves->push_back(std::move(top));
      continue;
    }
    std::vector<Literal> elements = std::move(top.elements());
    for (size_t k = elements.size(); k-- > 0;) open.push_back(std::move(elements[k]));
  }
}

// Checks the leaves of one device.
std::string Fault(absl::Span<const Literal> leaves, absl::Span<const Shape> shapes, std::string_view noun) {
  if (leaves.size() != shapes.size()) {
    return StrCat("the snapshot has ", leaves.size(), " ", noun, "s; the program has ", shapes.size());
  }
  for (size_t k = 0; k < shapes.size(); ++k) {
    if (leaves[k].elided()) return StrCat(noun, " ", k, " has no value in the snapshot");
    if (!FitsWithin(leaves[k].shape(), shapes[k])) {
      return StrCat(noun, " ", k, " of the snapshot is ", ToString(leaves[k].shape(), false),
                    "; that of the program is ", ToString(shapes[k], false));
    }
  }
  return "";
}

// Returns how the lists of a snapshot may divide the arguments of a program before partitioning.
std::optional<ShardedArrays> PartsOf(const ProtoFile& file, const Module& module, const Executable& executable) {
  if (executable.division() != nullptr) return executable.division()->arrays.parameters;
  if (file.argument_lists() <= 1 || !FirstUnpartitioned(module).valid()) return std::nullopt;
  absl::StatusOr<ShardedArrays> divided = ShardedArrays::OfParameters(module, file.argument_lists());
  return divided.ok() ? std::optional(*std::move(divided)) : std::nullopt;
}

// Writes a value of `shape` from its leaves, taking these from the front of `*leaves`.
absl::Status WriteLeaves(Shape shape, absl::Span<const Literal>* leaves, ShapeWriter* shapes, xla::LiteralProto* out) {
  std::vector<std::pair<Shape, xla::LiteralProto*>> open = {{shape, out}};
  while (!open.empty()) {
    const auto [at, to] = open.back();
    open.pop_back();
    if (!at.IsTuple()) {
      if (leaves->empty()) return absl::InternalError("too few leaves");
      const Literal& leaf = leaves->front();
      if (at.IsArray() && at.has_dynamic_dims()) {
        Literal padded = Literal::Zeros(at);
        CopyCommonElements(leaf, &padded);
        if (absl::Status status = WriteLiteral(padded, at, shapes, to); !status.ok()) return status;
        for (const int64_t size : leaf.shape().dims()) to->add_dynamic_sizes(static_cast<int32_t>(size));
      } else if (absl::Status status = WriteLiteral(leaf, at, shapes, to); !status.ok()) {
        return status;
      }
      leaves->remove_prefix(1);
      continue;
    }
    if (absl::Status status = shapes->Write(at, to->mutable_shape()); !status.ok()) return status;
    for (int64_t k = 0; k < at.tuple_size(); ++k) to->add_tuple_literals();
    for (int64_t k = at.tuple_size(); k-- > 0;) {
      open.push_back({at.element(k), to->mutable_tuple_literals(static_cast<int>(k))});
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<ProtoFile> OpenSnapshot(const SourceBuffer& source, std::string_view text, DiagnosticSink* sink) {
  const std::optional<ProtoForm> form = DetectProto(text);
  if (!form || (form->message != ProtoMessage::kSnapshot && form->message != ProtoMessage::kUnoptimizedSnapshot)) {
    return nullptr;
  }
  return ProtoFile::Read(source, text, *form, sink);
}

void ChooseDevices(const ProtoFile& file, const Module& module, EvaluatorOptions* options) {
  const int64_t lists = file.argument_lists();
  if (lists <= 1 || lists > EvaluatorOptions::kMaxDevices) return;
  bool replicas = false, partitions = false;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      const bool collective = HasTrait(i.opcode(), kCollective);
      partitions |= i.opcode() == Opcode::kPartitionId || (collective && i.has(Attr::kChannelId));
      replicas |= i.opcode() == Opcode::kReplicaId || (collective && !i.has(Attr::kChannelId));
    }
  }
  (replicas && !partitions ? options->num_replicas : options->num_partitions) = lists;
}

absl::StatusOr<SnapshotValues> ReadSnapshotValues(const ProtoFile& file, const Module& module,
                                                  const Executable& executable, const EvaluatorOptions& options) {
  SnapshotValues values;
  ByteLimit limit(options.limits.max_bytes, options.limits.max_bytes_flag);
  const int64_t devices = executable.argument_devices(), lists = file.argument_lists();
  const std::optional<ShardedArrays> parts = PartsOf(file, module, executable);
  const bool divided = parts && lists == parts->partitions();
  if (lists != 1 && lists != devices && !divided) {
    return absl::InvalidArgumentError(StrCat("the snapshot has the arguments of ", lists, " partitions, and there are ",
                                             devices,
                                             " devices: leave out --replicas and --partitions, or specify arguments"));
  }
  std::vector<Shape> shapes = executable.argument_shapes();
  if (divided) {
    shapes.clear();
    for (const ShardedArrays::Leaf& leaf : parts->leaves()) shapes.push_back(leaf.part);
  }
  std::vector<Literal> arguments;
  for (int64_t d = 0; d < (divided ? lists : devices); ++d) {
    absl::StatusOr<std::vector<Literal>> list =
        file.ReadArguments(lists == 1 ? 0 : static_cast<int>(d), &module.context(), &limit);
    if (!list.ok()) return list.status();
    std::vector<Literal> leaves;
    for (Literal& value : *list) AppendLeaves(std::move(value), &leaves);
    if (const std::string fault = Fault(leaves, shapes, "argument"); !fault.empty())
      return absl::InvalidArgumentError(fault);
    for (Literal& leaf : leaves) arguments.push_back(std::move(leaf));
  }
  if (divided) {
    absl::StatusOr<std::vector<Literal>> wholes = parts->Assemble(arguments, "argument");
    if (!wholes.ok()) return wholes.status();
    arguments = *std::move(wholes);
  }
  values.arguments = std::move(arguments);
  if (!file.has_result() || devices != 1 || executable.result_devices() != 1) return values;
  absl::StatusOr<Literal> result = file.ReadResult(&module.context(), &limit);
  if (!result.ok()) return absl::InvalidArgumentError(StrCat("result: ", std::string(result.status().message())));
  std::vector<Literal> leaves;
  AppendLeaves(*std::move(result), &leaves);
  if (const std::string fault = Fault(leaves, executable.result_shapes(), "result"); !fault.empty())
    return absl::InvalidArgumentError(fault);
  values.result = std::move(leaves);
  return values;
}

absl::StatusOr<std::string> FormatSnapshot(const Module& module, ProtoEncoding encoding, int64_t devices,
                                           absl::Span<const Literal> arguments,
                                           std::optional<absl::Span<const Literal>> results) {
  ShapeWriter shapes;
  const Computation entry = module.entry();
  // Takes the leaves of one device from the front of `arguments`.
  const auto write_arguments = [&](auto add) -> absl::Status {
    for (int64_t k = 0; k < entry.parameter_count(); ++k) {
      absl::Status status = WriteLeaves(entry.parameter(k).shape(), &arguments, &shapes, add());
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  };
  if (devices > 1) {
    xla::HloUnoptimizedSnapshot snapshot;
    if (absl::Status s = WriteModuleProto(module, {}, snapshot.mutable_hlo_module()); !s.ok()) return s;
    for (int64_t d = 0; d < devices; ++d) {
      xla::HloInputs* inputs = snapshot.add_partitions();
      if (absl::Status s = write_arguments([&] { return inputs->add_arguments(); }); !s.ok()) return s;
    }
    const bool binary = encoding == ProtoEncoding::kBinary;
    return FormatMessage(snapshot, binary ? ProtoEncoding::kWithArguments : encoding);
  }
  xla::HloSnapshot snapshot;
  if (absl::Status s = WriteModuleProto(module, {}, snapshot.mutable_hlo()->mutable_hlo_module()); !s.ok()) return s;
  if (absl::Status s = write_arguments([&] { return snapshot.add_arguments(); }); !s.ok()) return s;
  if (results) {
    absl::Span<const Literal> leaves = *results;
    absl::Status s = WriteLeaves(entry.root().shape(), &leaves, &shapes, snapshot.mutable_result());
    if (!s.ok()) return s;
  }
  snapshot.set_execution_platform("hlokit");
  return FormatMessage(snapshot, encoding);
}

}  // namespace hlokit::interp
