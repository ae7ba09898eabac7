// SPDX-License-Identifier: Apache-2.0
// Values as XLA's LiteralProto, whose elements are in the order of the layout, and in the raw form that follows
// unoptimized snapshots.
#ifndef HLOKIT_PARSER_PROTO_LITERAL_PROTO_H_
#define HLOKIT_PARSER_PROTO_LITERAL_PROTO_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/graph/context.h"
#include "ir/types/literal.h"
#include "parser/proto/shape_proto.h"
#include "parser/proto/xla_data.pb.h"
#include "parser/text/byte_limit.h"

namespace hlokit {

// Writes a value with the layouts of `shape`, which is compatible with it. Returns InvalidArgument if the value, or an
// element of the tuple, is elided.
absl::Status WriteLiteral(const Literal& literal, Shape shape, ShapeWriter* shapes, xla::LiteralProto* out);
absl::Status WriteLiteral(const Context& context, LiteralId literal, Shape shape, ShapeWriter* shapes,
                          xla::LiteralProto* out);

// Reads a value. Its bytes are taken from `limit`; ResourceExhausted if it has not as many. `dynamic_sizes` are
// dropped: the elements are those of the bounds. An array without elements, though its shape has some, is elided.
absl::StatusOr<Literal> ReadLiteral(const xla::LiteralProto& proto, Context* context, ByteLimit* limit);
// Reads a constant of `shape`, an array or a tuple of these, which must be compatible with the literal's.
absl::StatusOr<LiteralId> ReadConstant(const xla::LiteralProto& proto, Shape shape, Context* context, ByteLimit* limit);

// The raw form of a value: the length of a ShapeProto in 8 bytes, the ShapeProto, and for each array the sizes of its
// dimensions, if one is dynamic, and its elements, those below a byte packed. Tokens have no such form.
absl::StatusOr<Literal> ReadRawLiteral(std::string_view bytes, Context* context, ByteLimit* limit);
absl::Status AppendRawLiteral(const Literal& literal, std::string* out);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_LITERAL_PROTO_H_
