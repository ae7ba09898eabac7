// SPDX-License-Identifier: Apache-2.0
// Warns of the fields that a newer XLA has in its messages.
#ifndef HLOKIT_PARSER_PROTO_UNKNOWN_FIELDS_H_
#define HLOKIT_PARSER_PROTO_UNKNOWN_FIELDS_H_

#include <functional>
#include <string>
#include <utility>

#include "google/protobuf/message.h"
#include "ir/core/diagnostic.h"
#include "parser/proto/hlo.pb.h"

namespace hlokit {

// Reports the first unknown field with a value, once for each object.
class UnknownFields {
 public:
  // `place` names what is read, for the message.
  UnknownFields(DiagnosticSink* sink, std::function<std::string()> place) : sink_(sink), place_(std::move(place)) {}

  void Check(const google::protobuf::Message& message);
  // Of messages within it too; of lists the first.
  void CheckWithin(const google::protobuf::Message& message);
  // With the messages of its attributes; those of shapes and metadata are not in it when it is read.
  void CheckInstruction(const xla::HloInstructionProto& proto);

 private:
  DiagnosticSink* sink_;
  std::function<std::string()> place_;
  bool warned_ = false;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_UNKNOWN_FIELDS_H_
