// SPDX-License-Identifier: Apache-2.0
// Shapes and values as the messages of xla_data.proto.
#ifndef HLOKIT_INTERP_TPU_EXPORT_SHAPE_PROTO_H_
#define HLOKIT_INTERP_TPU_EXPORT_SHAPE_PROTO_H_

#include "interp/tpu/export/hlo.pb.h"
#include "ir/types/literal.h"
#include "ir/types/shape.h"

namespace hlokit::tpu {

// Writes a shape. An array without a layout gets the default one.
void WriteShape(Shape shape, xla::ShapeProto* out);
// Writes the elements in the order of the layout of `shape`, which has the types and dimensions of the literal. Returns
// false and writes nothing if part of the value is elided.
bool WriteLiteral(const Literal& literal, Shape shape, xla::LiteralProto* out);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_EXPORT_SHAPE_PROTO_H_
