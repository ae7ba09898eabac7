// SPDX-License-Identifier: Apache-2.0
#include "parser/formats/module_formats.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "ir/json/json_printer.h"
#include "ir/text/printer.h"
#include "parser/bytecode/writer.h"
#include "parser/mlir/printer.h"
#include "parser/proto/proto_file.h"
#include "parser/stablehlo/export/export.h"

namespace hlokit {
namespace {

std::optional<std::string> WriteHlo(const Module& module, const ForeignParts*, DiagnosticSink*) {
  return ToString(module, PrintOptions::Lossless());
}

std::optional<std::string> WriteJson(const Module& module, const ForeignParts*, DiagnosticSink*) {
  return ToJson(module);
}

const ProtoFileParts* ProtoParts(const ForeignParts* parts) { return dynamic_cast<const ProtoFileParts*>(parts); }

std::optional<std::string> WriteMessage(const Module& module, ProtoMessage message, ProtoEncoding encoding,
                                        const ForeignParts* parts, DiagnosticSink* sink) {
  absl::StatusOr<std::string> written = WriteModuleAs(module, {message, encoding}, ProtoParts(parts));
  if (written.ok()) return *std::move(written);
  const bool large = absl::IsResourceExhausted(written.status());
  sink->Error(large ? DiagnosticKind::kTooLarge : DiagnosticKind::kUnsupported, {},
              std::string(written.status().message()));
  return std::nullopt;
}

// In the message that the module came in, else in the usual one that holds all its attributes.
template <ProtoEncoding encoding>
std::optional<std::string> WriteProto(const Module& module, const ForeignParts* parts, DiagnosticSink* sink) {
  return WriteMessage(module, MessageFor(module, ProtoParts(parts)), encoding, parts, sink);
}

std::optional<std::string> WriteSnapshot(const Module& module, const ForeignParts* parts, DiagnosticSink* sink) {
  return WriteMessage(module, ProtoMessage::kSnapshot, ProtoEncoding::kBinary, parts, sink);
}

std::optional<std::string> WriteStablehlo(const Module& module, const ForeignParts*, DiagnosticSink* sink) {
  const std::unique_ptr<mlir::Module> program = stablehlo::ExportToStablehlo(module, sink);
  if (program == nullptr) return std::nullopt;
  return mlir::PrintMlir(*program, {});
}

std::optional<std::string> WriteArtifact(const Module& module, const ForeignParts*, DiagnosticSink* sink) {
  const std::unique_ptr<mlir::Module> program = stablehlo::ExportToStablehlo(module, sink);
  if (program == nullptr) return std::nullopt;
  return bytecode::WriteArtifact(program.get(), sink);
}

constexpr std::string_view kHloSuffixes[] = {".hlo", ".txt"};
constexpr std::string_view kJsonSuffixes[] = {".json"};
constexpr std::string_view kProtoSuffixes[] = {".pb", ".hlo.pb", ".binpb"};
constexpr std::string_view kProtoTextSuffixes[] = {".pbtxt", ".textproto", ".txtpb"};
constexpr std::string_view kProtoJsonSuffixes[] = {".pb.json"};
constexpr std::string_view kSnapshotSuffixes[] = {".hlo_snapshot.pb", ".snapshot.pb"};

constexpr std::string_view kStablehloSuffixes[] = {".mlir"};
constexpr std::string_view kArtifactSuffixes[] = {".mlir.bc", ".mlirbc"};

constexpr ModuleFormat kFormats[] = {
    {"hlo", "HLO text with everything in it", kHloSuffixes, false, false, WriteHlo},
    {"json", "hlokit's JSON", kJsonSuffixes, false, false, WriteJson},
    {"proto", "XLA's protocol buffer, HloProto", kProtoSuffixes, true, false, WriteProto<ProtoEncoding::kBinary>},
    {"textproto", "the same in text format", kProtoTextSuffixes, true, false, WriteProto<ProtoEncoding::kText>},
    {"proto-json", "the same in protobuf's JSON", kProtoJsonSuffixes, true, false, WriteProto<ProtoEncoding::kJson>},
    {"snapshot", "HloSnapshot, with the values of one that is read", kSnapshotSuffixes, true, false, WriteSnapshot},
    {"stablehlo", "StableHLO text", kStablehloSuffixes, false, true, WriteStablehlo},
    {"artifact", "a portable artifact of StableHLO", kArtifactSuffixes, false, true, WriteArtifact},
};

}  // namespace

absl::Span<const ModuleFormat> ModuleFormats() { return kFormats; }

const ModuleFormat* FindModuleFormat(std::string_view name) {
  for (const ModuleFormat& format : kFormats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

const ModuleFormat* ModuleFormatOfPath(std::string_view path) {
  const ModuleFormat* best = nullptr;
  size_t longest = 0;
  for (const ModuleFormat& format : kFormats) {
    for (std::string_view suffix : format.suffixes) {
      if (suffix.size() <= longest || !path.ends_with(suffix)) continue;
      best = &format;
      longest = suffix.size();
    }
  }
  return best;
}

}  // namespace hlokit
