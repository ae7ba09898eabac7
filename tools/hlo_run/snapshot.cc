// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/snapshot.h"

#include <memory>
#include <utility>

#include "ir/core/str_cat.h"
#include "parser/core/module_formats.h"
#include "parser/proto/literal_proto.h"
#include "parser/proto/module_writer.h"
#include "parser/proto/proto_file.h"
#include "tools/cli/output_file.h"

namespace hlokit::run {
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
    if (!Compatible(leaves[k].shape(), shapes[k])) {
      return StrCat(noun, " ", k, " of the snapshot is ", ToString(leaves[k].shape(), false),
                    "; that of the program is ", ToString(shapes[k], false));
    }
  }
  return "";
}

// Writes a value of `shape` from its leaves, taking these from the front of `*leaves`.
absl::Status WriteLeaves(Shape shape, absl::Span<const Literal>* leaves, ShapeWriter* shapes, xla::LiteralProto* out) {
  std::vector<std::pair<Shape, xla::LiteralProto*>> open = {{shape, out}};
  while (!open.empty()) {
    const auto [at, to] = open.back();
    open.pop_back();
    if (!at.IsTuple()) {
      if (leaves->empty()) return absl::InternalError("too few leaves");
      if (absl::Status status = WriteLiteral(leaves->front(), at, shapes, to); !status.ok()) return status;
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

bool ReadRecordedValues(const cli::InputPart& part, const Module& module, const Engine& evaluator, int64_t max_bytes,
                        cli::DiagnosticReporter* diagnostics, RecordedValues* values) {
  const std::optional<ProtoForm> form = DetectProto(part.text);
  if (!form || (form->message != ProtoMessage::kSnapshot && form->message != ProtoMessage::kUnoptimizedSnapshot)) {
    return true;
  }
  const auto fail = [&](std::string_view message) {
    diagnostics->ShowError(part.label(), message, cli::kRejected);
    return false;
  };
  DiagnosticSink sink;
  const std::unique_ptr<ProtoFile> file = ProtoFile::Read(*part.source, part.text, *form, &sink);
  diagnostics->Show(sink, *part.source);
  if (file == nullptr) return false;
  const int64_t devices = evaluator.argument_devices();
  const int lists = file->argument_lists();
  if (lists != 1 && lists != devices) {
    if (devices == 1 && module.header().num_partitions <= 1) {
      return fail(StrCat("the snapshot has the arguments of ", lists,
                         " partitions of a program that is not partitioned yet, and each has its part alone: specify "
                         "whole arguments with --args, or --seed"));
    }
    return fail(StrCat("the snapshot has the arguments of ", lists, " partitions, and there are ", devices,
                       " devices: specify --partitions=", lists, ", or arguments"));
  }
  std::vector<Literal> arguments;
  for (int64_t d = 0; d < devices; ++d) {
    absl::StatusOr<std::vector<Literal>> list =
        file->ReadArguments(lists == 1 ? 0 : static_cast<int>(d), &module.context(), max_bytes);
    if (!list.ok()) return fail(std::string(list.status().message()));
    std::vector<Literal> leaves;
    for (Literal& value : *list) AppendLeaves(std::move(value), &leaves);
    if (const std::string fault = Fault(leaves, evaluator.argument_shapes(), "argument"); !fault.empty()) {
      return fail(fault);
    }
    for (Literal& leaf : leaves) arguments.push_back(std::move(leaf));
  }
  values->arguments = std::move(arguments);
  if (!file->has_result() || devices != 1) return true;
  absl::StatusOr<Literal> result = file->ReadResult(&module.context(), max_bytes);
  if (!result.ok()) return fail(StrCat("result: ", std::string(result.status().message())));
  std::vector<Literal> leaves;
  AppendLeaves(*std::move(result), &leaves);
  if (const std::string fault = Fault(leaves, evaluator.result_shapes(), "result"); !fault.empty()) return fail(fault);
  values->result = std::move(leaves);
  return true;
}

bool WriteRunSnapshot(const std::string& path, const Module& module, absl::Span<const Literal> arguments,
                      absl::Span<const Literal> results, cli::DiagnosticReporter* diagnostics) {
  const auto write = [&]() -> absl::StatusOr<std::string> {
    xla::HloSnapshot snapshot;
    absl::Status status = WriteModuleProto(module, {}, snapshot.mutable_hlo()->mutable_hlo_module());
    if (!status.ok()) return status;
    ShapeWriter shapes;
    const Computation entry = module.entry();
    for (int64_t k = 0; k < entry.parameter_count(); ++k) {
      status = WriteLeaves(entry.parameter(k).shape(), &arguments, &shapes, snapshot.add_arguments());
      if (!status.ok()) return status;
    }
    status = WriteLeaves(entry.root().shape(), &results, &shapes, snapshot.mutable_result());
    if (!status.ok()) return status;
    snapshot.set_execution_platform("hlokit");
    const ModuleFormat* format = ModuleFormatOfPath(path);
    const bool text = format != nullptr && format->name == "textproto";
    return FormatMessage(snapshot, text ? ProtoEncoding::kText : ProtoEncoding::kBinary);
  };
  const absl::StatusOr<std::string> bytes = write();
  if (!bytes.ok()) {
    diagnostics->ShowError(path, std::string(bytes.status().message()), cli::kRejected);
    return false;
  }
  return cli::WriteOutputFile(path, diagnostics, [&](TextWriter& out) { out << *bytes; });
}

}  // namespace hlokit::run
