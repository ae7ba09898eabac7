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
#include "parser/core/parser.h"
#include "parser/proto/hlo.pb.h"
#include "parser/proto/kept_fields.h"
#include "parser/proto/proto_form.h"
#include "parser/proto/xla.pb.h"

namespace hlokit {

// Messages of 2 GiB and more are an error of protobuf, which these functions report.
class ProtoFile {
 public:
  // Reads `text`, a part of `source`. Returns null after errors, which are in the sink. The file refers to `text`.
  static std::unique_ptr<ProtoFile> Read(const SourceBuffer& source, std::string_view text, ProtoForm form,
                                         DiagnosticSink* sink);

  ProtoForm form() const { return form_; }
  google::protobuf::Message* message() { return message_; }
  xla::HloModuleProto* module();
  // Null if the file has none.
  const xla::HloModuleConfigProto* config() const;
  const xla::BufferAssignmentProto* buffer_assignment() const;
  const xla::HloSnapshot* snapshot() const;

  std::unique_ptr<Module> ReadModule(const ParseOptions& options, DiagnosticSink* sink,
                                     std::shared_ptr<Context> context = nullptr);
  // As ReadModule, and what the module does not hold. Takes several times as long.
  std::unique_ptr<Module> ReadModule(const ParseOptions& options, DiagnosticSink* sink, KeptFields* kept);

  // The number of lists of arguments, each of one execution: of a snapshot one, of an unoptimized snapshot one for each
  // partition. 0: the file has no values.
  int argument_lists() const;
  absl::StatusOr<std::vector<Literal>> ReadArguments(int list, Context* context, int64_t max_bytes) const;
  bool has_result() const;
  absl::StatusOr<Literal> ReadResult(Context* context, int64_t max_bytes) const;

  // Replaces the module by what `module` is written as, and sets the attributes of the header that the configuration
  // has.
  absl::Status SetModule(const Module& module, const KeptFields* kept);
  absl::StatusOr<std::string> Write(ProtoEncoding encoding) const;

 private:
  explicit ProtoFile(ProtoForm form);

  google::protobuf::Arena arena_;
  ProtoForm form_;
  google::protobuf::Message* message_;
  std::string_view raw_arguments_;  // after an unoptimized snapshot
};

// Returns the module of `text`, which is of that form.
std::unique_ptr<Module> ParseProtoModulePart(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                                             ProtoForm form, const ParseOptions& options, DiagnosticSink* sink,
                                             std::shared_ptr<Context> context);

// Returns a module as a message. A HloModuleProtoWithConfig holds all attributes of the header; other messages lack
// those that NeedsConfig tells.
absl::StatusOr<std::string> WriteModuleAs(const Module& module, ProtoForm form, const KeptFields* kept = nullptr);

// Reads and writes any message in any form but kWithArguments: for messages that hold no module.
absl::Status ParseMessage(std::string_view text, ProtoEncoding encoding, google::protobuf::Message* message,
                          int* line = nullptr, int* column = nullptr);
absl::StatusOr<std::string> FormatMessage(const google::protobuf::Message& message, ProtoEncoding encoding);
// Returns a new message of the name `xla.OpSharding` or `OpSharding`; null if there is none.
std::unique_ptr<google::protobuf::Message> NewMessage(std::string_view name);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_PROTO_FILE_H_
