// SPDX-License-Identifier: Apache-2.0
// Shapes and layouts as XLA's ShapeProto and LayoutProto.
#ifndef HLOKIT_PARSER_PROTO_SHAPE_PROTO_H_
#define HLOKIT_PARSER_PROTO_SHAPE_PROTO_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/graph/context.h"
#include "ir/types/shape.h"
#include "parser/proto/xla_data.pb.h"

namespace hlokit {

// Readers of protocol buffers refuse messages that are nested more than 100 deep, and a shape is at most 20 messages
// below that of a file.
inline constexpr int kMaxProtoShapeNesting = 80;

xla::PrimitiveType PrimitiveTypeOf(ElementType type);
// Returns nullopt for a number without an element type here.
std::optional<ElementType> ElementTypeOf(xla::PrimitiveType type);

// Writes shapes of one message. Tuples may share elements, and messages repeat these: their number is bounded.
class ShapeWriter {
 public:
  // Returns ResourceExhausted if the tuple is nested too deeply, or if all shapes so far have too many elements.
  absl::Status Write(Shape shape, xla::ShapeProto* out);

 private:
  static constexpr int64_t kMaxElements = int64_t{1} << 24;

  absl::Status WriteLayout(const LayoutRecord& layout, xla::LayoutProto* out);

  int64_t elements_ = 0;
};

// Reads a shape. An array without a layout has none here either.
absl::StatusOr<Shape> ReadShape(const xla::ShapeProto& proto, Context* context);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_SHAPE_PROTO_H_
