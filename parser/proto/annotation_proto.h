// SPDX-License-Identifier: Apache-2.0
// Metadata, stack frames, frontend attributes, statistics, original values and accuracies as XLA's messages.
#ifndef HLOKIT_PARSER_PROTO_ANNOTATION_PROTO_H_
#define HLOKIT_PARSER_PROTO_ANNOTATION_PROTO_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/core/ids.h"
#include "ir/graph/context.h"
#include "ir/graph/metadata.h"
#include "ir/graph/module_header.h"
#include "ir/ops/attribute.h"
#include "parser/proto/hlo.pb.h"
#include "parser/proto/xla_data.pb.h"

namespace hlokit {

// Returns `s` with the replacement character for bytes that are not UTF-8, which strings of messages must be.
std::string Utf8(std::string_view s);

// `frame_ids`: by stack frame of the module (from 1), its number in the message; empty: the same.
void WriteMetadata(const Context& context, const Metadata& metadata, absl::Span<const int32_t> frame_ids,
                   xla::OpMetadata* out);
// `payloads` are those of the module. A stack frame keeps its number.
Metadata ReadMetadata(const xla::OpMetadata& proto, const xla::HloModuleProto& module, Context* context);

// Messages have the parent of a frame as it is, 0 for none; HLO text has it plus one.
void WriteStackFrames(const Context& context, const StackFrames& frames, xla::StackFrameIndexProto* out);
StackFrames ReadStackFrames(const xla::StackFrameIndexProto& proto, Context* context);

void WriteFrontendAttributes(const Context& context, ListId attributes, xla::FrontendAttributes* out);
ListId ReadFrontendAttributes(const xla::FrontendAttributes& proto, Context* context);

// The frontend attribute that has the HLO text of an attribute for which XLA's message has no field: kind TEXT of
// ir/ops/attributes.def.
std::string TextKey(Attr attr);

void WriteStatistics(const Context& context, ListId statistics, xla::StatisticsViz* out);
ListId ReadStatistics(const xla::StatisticsViz& proto, Context* context);

void WriteAccuracy(const Context& context, ListId accuracy, xla::ResultAccuracy* out);
ListId ReadAccuracy(const xla::ResultAccuracy& proto, Context* context);

void WriteOriginalArray(const Context& context, ListId array, xla::OriginalArrayProto* out);
ListId ReadOriginalArray(const xla::OriginalArrayProto& proto, Context* context);
void WriteOriginalValue(const Context& context, ListId value, xla::OriginalValueProto* out);
// Returns InvalidArgument if the elements are no tree in depth-first order.
absl::StatusOr<ListId> ReadOriginalValue(const xla::OriginalValueProto& proto, Context* context);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_ANNOTATION_PROTO_H_
