// SPDX-License-Identifier: Apache-2.0
#include "parser/proto/unoptimized_snapshot.h"

#include <cstdint>
#include <utility>

#include "ir/core/str_cat.h"
#include "parser/proto/literal_proto.h"
#include "parser/proto/serialize.h"
#include "parser/proto/wire_format.h"

namespace hlokit {

absl::Status ReadUnoptimizedSnapshot(std::string_view file, xla::HloUnoptimizedSnapshot* snapshot) {
  uint64_t length = 0;
  if (!ReadVarint(&file, &length) || length > file.size() || length > INT32_MAX ||
      !snapshot->ParseFromArray(file.data(), static_cast<int>(length))) {
    return absl::InvalidArgumentError("expected the length of an HloUnoptimizedSnapshot, and the message");
  }
  std::string_view rest = file.substr(length);
  Context context;
  for (xla::HloInputs& inputs : *snapshot->mutable_partitions()) {
    for (const xla::HloInputs::LiteralDescriptor& d : inputs.arguments_descriptors()) {
      const auto place = [&] { return StrCat("argument ", inputs.arguments_size(), ": "); };
      if (d.argument_size_bytes() > rest.size()) {
        return absl::InvalidArgumentError(StrCat(place(), "the file ends before the value does"));
      }
      // A value has at most eight elements of a byte in a byte, so its memory is bounded by the file.
      ByteLimit no_limit(INT64_MAX);
      absl::StatusOr<Literal> value = ReadRawLiteral(rest.substr(0, d.argument_size_bytes()), &context, &no_limit);
      if (!value.ok()) {
        return absl::Status(value.status().code(), StrCat(place(), std::string(value.status().message())));
      }
      rest.remove_prefix(d.argument_size_bytes());
      ShapeWriter shapes;
      absl::Status status = WriteLiteral(*value, value->shape(), &shapes, inputs.add_arguments());
      if (!status.ok()) return status;
    }
    inputs.clear_arguments_descriptors();
  }
  if (rest.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(rest.size(), " bytes after the last argument"));
}

absl::StatusOr<std::string> WriteUnoptimizedSnapshot(const xla::HloUnoptimizedSnapshot& snapshot) {
  xla::HloUnoptimizedSnapshot head = snapshot;
  std::string values;
  Context context;
  for (xla::HloInputs& inputs : *head.mutable_partitions()) {
    for (const xla::LiteralProto& argument : inputs.arguments()) {
      ByteLimit no_limit(INT64_MAX);
      absl::StatusOr<Literal> value = ReadLiteral(argument, &context, &no_limit);
      if (!value.ok()) return value.status();
      const size_t begin = values.size();
      if (absl::Status status = AppendRawLiteral(*value, &values); !status.ok()) return status;
      inputs.add_arguments_descriptors()->set_argument_size_bytes(values.size() - begin);
    }
    inputs.clear_arguments();
  }
  const std::string message = SerializedMessage(head);
  std::string out;
  for (uint64_t length = message.size();; length >>= 7) {
    out.push_back(static_cast<char>((length & 0x7f) | (length > 0x7f ? 0x80 : 0)));
    if (length <= 0x7f) break;
  }
  return out + message + values;
}

}  // namespace hlokit
