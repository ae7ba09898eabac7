// SPDX-License-Identifier: Apache-2.0
// Bytes of messages, the same whenever the message is the same.
#ifndef HLOKIT_PARSER_PROTO_SERIALIZE_H_
#define HLOKIT_PARSER_PROTO_SERIALIZE_H_

#include <string>

#include "absl/status/statusor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message.h"

namespace hlokit {

// Returns the bytes of a message with the entries of maps sorted by key; none of one of 2 GiB and more.
inline std::string SerializedMessage(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  if (!message.SerializePartialToCodedStream(&out)) bytes.clear();
  out.Trim();
  return bytes;
}

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_SERIALIZE_H_
