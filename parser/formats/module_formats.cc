// SPDX-License-Identifier: Apache-2.0
#include "parser/formats/module_formats.h"

#include "ir/json/json_printer.h"
#include "ir/text/printer.h"
#include "parser/proto/proto_file.h"

namespace hlokit {
namespace {

absl::StatusOr<std::string> WriteHlo(const Module& module, const ForeignParts*) {
  return ToString(module, PrintOptions::Lossless());
}

absl::StatusOr<std::string> WriteJson(const Module& module, const ForeignParts*) { return ToJson(module); }

const ProtoFileParts* ProtoParts(const ForeignParts* parts) { return dynamic_cast<const ProtoFileParts*>(parts); }

// In the message that the module came in, else in the usual one that holds all its attributes.
template <ProtoEncoding encoding>
absl::StatusOr<std::string> WriteProto(const Module& module, const ForeignParts* parts) {
  return WriteModuleAs(module, {MessageFor(module, ProtoParts(parts)), encoding}, ProtoParts(parts));
}

absl::StatusOr<std::string> WriteSnapshot(const Module& module, const ForeignParts* parts) {
  return WriteModuleAs(module, {ProtoMessage::kSnapshot, ProtoEncoding::kBinary}, ProtoParts(parts));
}

constexpr std::string_view kHloSuffixes[] = {".hlo", ".txt"};
constexpr std::string_view kJsonSuffixes[] = {".json"};
constexpr std::string_view kProtoSuffixes[] = {".pb", ".hlo.pb", ".binpb"};
constexpr std::string_view kProtoTextSuffixes[] = {".pbtxt", ".textproto", ".txtpb"};
constexpr std::string_view kProtoJsonSuffixes[] = {".pb.json"};
constexpr std::string_view kSnapshotSuffixes[] = {".hlo_snapshot.pb", ".snapshot.pb"};

constexpr ModuleFormat kFormats[] = {
    {"hlo", "HLO text with everything in it", kHloSuffixes, false, WriteHlo},
    {"json", "hlokit's JSON", kJsonSuffixes, false, WriteJson},
    {"proto", "XLA's protocol buffer, HloProto", kProtoSuffixes, true, WriteProto<ProtoEncoding::kBinary>},
    {"textproto", "the same in text format", kProtoTextSuffixes, true, WriteProto<ProtoEncoding::kText>},
    {"proto-json", "the same in protobuf's JSON", kProtoJsonSuffixes, true, WriteProto<ProtoEncoding::kJson>},
    {"snapshot", "HloSnapshot, with the values of one that is read", kSnapshotSuffixes, true, WriteSnapshot},
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
