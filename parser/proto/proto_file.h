// SPDX-License-Identifier: Apache-2.0
// Files of XLA's messages that hold a module: HloModuleProto, HloProto with the buffer assignment, snapshots with
// arguments and results, HloModuleProtoWithConfig. Binary, as text and as JSON.
#ifndef HLOKIT_PARSER_PROTO_PROTO_FILE_H_
#define HLOKIT_PARSER_PROTO_PROTO_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/arena.h"
#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"
#include "parser/proto/hlo.pb.h"
#include "parser/proto/kept_fields.h"
#include "parser/proto/module_reader.h"
#include "parser/proto/proto_form.h"
#include "parser/proto/xla.pb.h"
#include "parser/text/byte_limit.h"
#include "parser/text/foreign_parts.h"
#include "parser/text/parse_options.h"

namespace hlokit {

// Messages of 2 GiB and more are an error of protobuf, which these functions report.
class ProtoFile {
 public:
  // Reads `text`, a part of `source`. Returns null after errors, which are in the sink. Arguments after an unoptimized
  // snapshot become part of the message.
  static std::unique_ptr<ProtoFile> Read(const SourceBuffer& source, std::string_view text, ProtoForm form,
                                         DiagnosticSink* sink);

  ProtoForm form() const { return form_; }
  google::protobuf::Message* message() { return message_; }
  xla::HloModuleProto* module();
  // Null if the file has none.
  const xla::HloModuleConfigProto* config() const;
  const xla::BufferAssignmentProto* buffer_assignment() const;
  const xla::HloSnapshot* snapshot() const;

  // Returns null after errors, which are in the sink.
  std::unique_ptr<Module> ReadModule(const ParseOptions& options, DiagnosticSink* sink,
                                     std::shared_ptr<Context> context = nullptr, ModuleReadMap* map = nullptr);

  // The number of lists of arguments, each of one execution: of a snapshot one, of an unoptimized snapshot one for each
  // partition. 0: the file has no values.
  int argument_lists() const;
  // The bytes of values are taken from `limit`. Values left out of the file are elided.
  absl::StatusOr<std::vector<Literal>> ReadArguments(int list, Context* context, ByteLimit* limit) const;
  bool has_result() const;
  absl::StatusOr<Literal> ReadResult(Context* context, ByteLimit* limit) const;

 private:
  explicit ProtoFile(ProtoForm form);

  google::protobuf::Arena arena_;
  ProtoForm form_;
  google::protobuf::Message* message_;
};

// What the file of a module says beyond it.
struct ProtoFileParts : ForeignParts {
  KeptFields fields;
  std::unique_ptr<ProtoFile> file;  // without its module
  uint64_t module_hash = 0;         // of the bytes of its module, if there is a buffer assignment
};

// Returns the module of `text`, a part of `source` of that form; null after errors. `parts`: what it does not hold; may
// be null.
std::unique_ptr<Module> ParseProtoModule(const SourceBuffer& source, std::string_view text, ProtoForm form,
                                         const ParseOptions& options, DiagnosticSink* sink,
                                         std::shared_ptr<Context> context = nullptr,
                                         std::unique_ptr<const ProtoFileParts>* parts = nullptr);

// Returns a module as a message. Only a HloModuleProtoWithConfig holds all attributes of the header (NeedsConfig). With
// the parts of the file that it was read from, the module is written with them, and a message of the same kind with
// what else that had: values, configuration, and, unless the module has changed, the buffer assignment.
absl::StatusOr<std::string> WriteModuleAs(const Module& module, ProtoForm form, const ProtoFileParts* parts = nullptr);
// Returns the kind of message for a module: that of its file, else HloProto, or, if the header needs it, a
// HloModuleProtoWithConfig, which readers of HloProto read as well.
ProtoMessage MessageFor(const Module& module, const ProtoFileParts* parts);

// Reads and writes any message. kWithArguments is for HloUnoptimizedSnapshot.
absl::Status ParseMessage(std::string_view text, ProtoEncoding encoding, google::protobuf::Message* message,
                          int* line = nullptr, int* column = nullptr);
// As ParseMessage, in the encoding that `text` is in: which of text and bytes, it shows by its characters.
absl::Status ParseAnyEncoding(std::string_view text, google::protobuf::Message* message);
absl::StatusOr<std::string> FormatMessage(const google::protobuf::Message& message, ProtoEncoding encoding);
// Returns a new message of the name `xla.OpSharding` or `OpSharding`; null if there is none.
std::unique_ptr<google::protobuf::Message> NewMessage(std::string_view name);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_PROTO_FILE_H_
