// SPDX-License-Identifier: Apache-2.0
// Instructions as XLA's HloInstructionProto, with the fields that XLA writes.
#ifndef HLOKIT_PARSER_PROTO_INSTRUCTION_WRITER_H_
#define HLOKIT_PARSER_PROTO_INSTRUCTION_WRITER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "parser/proto/hlo.pb.h"
#include "parser/proto/shape_proto.h"

namespace hlokit {

// The numbers of computations and instructions in a message. XLA's: computations in the order of the message, and
// (number of the computation << 32 | place in it) for an instruction.
struct ProtoIds {
  std::vector<int64_t> computations;  // by ComputationId
  std::vector<int64_t> instructions;  // by InstructionId

  int64_t of(ComputationId id) const { return computations[id.value]; }
  int64_t of(InstructionId id) const { return instructions[id.value]; }
};

class InstructionWriter {
 public:
  // `ids` and `frame_ids` (see WriteMetadata) must outlive this object. Constants with more elements than
  // `max_literal_elements` are written without a value, as elided ones are.
  InstructionWriter(const Module& module, const ProtoIds& ids, absl::Span<const int32_t> frame_ids,
                    int64_t max_literal_elements)
      : module_(module), ids_(ids), frame_ids_(frame_ids), max_literal_elements_(max_literal_elements) {}

  // Returns ResourceExhausted if a shape, a sharding or a value is too large for a message.
  absl::Status Write(Instruction instruction, xla::HloInstructionProto* out);

  ShapeWriter& shapes() { return shapes_; }
  void WriteMetadata(MetadataId metadata, xla::OpMetadata* out) const;

 private:
  // ---- attribute_writers.cc ----
  absl::Status WriteAttribute(Instruction i, AttrValue value, xla::HloInstructionProto* out);
#define PROTO_CUSTOM(Name) absl::Status Write##Name(Instruction i, AttrValue value, xla::HloInstructionProto* out);
#include "parser/proto/attribute_fields.def"
  absl::Status WriteText(AttrValue value, xla::HloInstructionProto* out);
  // ---- instruction_writer.cc ----
  absl::Status WriteConstant(LiteralId literal, Shape shape, xla::LiteralProto* out);
  absl::Status WriteShardingTo(ListId sharding, xla::OpSharding* out);
  void WriteDefaults(Instruction i, xla::HloInstructionProto* out);

  const Module& module_;
  const ProtoIds& ids_;
  absl::Span<const int32_t> frame_ids_;
  int64_t max_literal_elements_;
  ShapeWriter shapes_;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_INSTRUCTION_WRITER_H_
