// SPDX-License-Identifier: Apache-2.0
#include "parser/proto/annotation_proto.h"

#include <algorithm>
#include <utility>

#include "ir/core/printable_text.h"
#include "ir/core/str_cat.h"
#include "ir/text/frontend_attributes.h"
#include "ir/text/original_value.h"
#include "ir/text/result_accuracy.h"
#include "ir/text/statistics_viz.h"

namespace hlokit {
namespace {

// Returns an invalid id for an empty string.
StringId Text(const std::string& s, Context* context) { return s.empty() ? StringId() : context->strings.Intern(s); }

}  // namespace

std::string Utf8(std::string_view s) {
  if (std::all_of(s.begin(), s.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; })) {
    return std::string(s);
  }
  std::string out;
  while (!s.empty()) {
    const size_t length = Utf8Length(s);
    out.append(length == 0 ? "\xef\xbf\xbd" : s.substr(0, length));
    s.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

void WriteMetadata(const Context& context, const Metadata& m, absl::Span<const int32_t> frame_ids,
                   xla::OpMetadata* out) {
  if (m.op_type) out->set_op_type(Utf8(context.str(m.op_type)));
  if (m.op_name) out->set_op_name(Utf8(context.str(m.op_name)));
  if (m.source_file) out->set_source_file(Utf8(context.str(m.source_file)));
  out->set_source_line(static_cast<int32_t>(m.source_line));
  out->set_source_end_line(static_cast<int32_t>(m.source_end_line));
  out->set_source_column(static_cast<int32_t>(m.source_column));
  out->set_source_end_column(static_cast<int32_t>(m.source_end_column));
  const int64_t frame = m.stack_frame_id;
  const bool mapped = frame >= 1 && frame <= static_cast<int64_t>(frame_ids.size());
  out->set_stack_frame_id(mapped ? frame_ids[static_cast<size_t>(frame - 1)] : static_cast<int32_t>(frame));
  for (int64_t type : context.list(m.profile_types)) {
    out->mutable_profile_info()->add_profile_type(static_cast<xla::ProfileType>(type));
  }
  if (m.deduplicated_name) out->set_deduplicated_name(Utf8(context.str(m.deduplicated_name)));
  if (m.scheduling_name) out->set_scheduling_name(Utf8(context.str(m.scheduling_name)));
  if (m.preserve_layout) out->set_preserve_layout(true);
  if (m.payload) out->mutable_metadata_payload()->set_value(std::string(context.str(m.payload)));
}

Metadata ReadMetadata(const xla::OpMetadata& proto, const xla::HloModuleProto& module, Context* context) {
  Metadata m;
  m.op_type = Text(proto.op_type(), context);
  m.op_name = Text(proto.op_name(), context);
  m.source_file = Text(proto.source_file(), context);
  m.source_line = proto.source_line();
  m.source_end_line = proto.source_end_line();
  m.source_column = proto.source_column();
  m.source_end_column = proto.source_end_column();
  m.stack_frame_id = proto.stack_frame_id();
  m.deduplicated_name = Text(proto.deduplicated_name(), context);
  m.scheduling_name = Text(proto.scheduling_name(), context);
  m.preserve_layout = proto.preserve_layout();
  if (proto.has_profile_info() || proto.profile_type_size() != 0) {
    std::vector<int64_t> types;
    for (int type : proto.profile_info().profile_type()) types.push_back(type);
    if (types.empty()) types.assign(proto.profile_type().begin(), proto.profile_type().end());
    constexpr int64_t kLastProfileType = 3;
    types.erase(std::remove_if(types.begin(), types.end(), [](int64_t t) { return t < 0 || t > kLastProfileType; }),
                types.end());
    if (!types.empty()) m.profile_types = context->lists.Intern(types);
  }
  if (proto.metadata_payload().has_value()) {
    m.payload = Text(proto.metadata_payload().value(), context);
  } else if (proto.metadata_payload().has_id() && proto.metadata_payload().id() >= 0 &&
             proto.metadata_payload().id() < module.payloads_size()) {
    m.payload = Text(module.payloads(static_cast<int>(proto.metadata_payload().id())), context);
  }
  return m;
}

void WriteStackFrames(const Context& context, const StackFrames& frames, xla::StackFrameIndexProto* out) {
  for (StringId name : frames.file_names) out->add_file_names(Utf8(context.str(name)));
  for (StringId name : frames.function_names) out->add_function_names(Utf8(context.str(name)));
  for (const FileLocation& location : frames.file_locations) {
    xla::StackFrameIndexProto::FileLocation* to = out->add_file_locations();
    to->set_file_name_id(location.file_name_id);
    to->set_function_name_id(location.function_name_id);
    to->set_line(location.line);
    to->set_column(location.column);
    to->set_end_line(location.end_line);
    to->set_end_column(location.end_column);
  }
  for (const StackFrame& frame : frames.stack_frames) {
    xla::StackFrameIndexProto::StackFrame* to = out->add_stack_frames();
    to->set_file_location_id(frame.file_location_id);
    to->set_parent_frame_id(std::max(frame.parent_frame_id - 1, 0));
  }
}

StackFrames ReadStackFrames(const xla::StackFrameIndexProto& proto, Context* context) {
  StackFrames frames;
  for (const std::string& name : proto.file_names()) frames.file_names.push_back(context->strings.Intern(name));
  for (const std::string& name : proto.function_names()) {
    frames.function_names.push_back(context->strings.Intern(name));
  }
  for (const xla::StackFrameIndexProto::FileLocation& l : proto.file_locations()) {
    frames.file_locations.push_back(
        {l.file_name_id(), l.function_name_id(), l.line(), l.end_line(), l.column(), l.end_column()});
  }
  for (const xla::StackFrameIndexProto::StackFrame& f : proto.stack_frames()) {
    const int32_t parent = std::clamp(f.parent_frame_id(), 0, INT32_MAX - 1);
    frames.stack_frames.push_back({f.file_location_id(), parent + 1});
  }
  return frames;
}

void WriteFrontendAttributes(const Context& context, ListId attributes, xla::FrontendAttributes* out) {
  for (const auto& [key, value] : DecodeFrontendAttributes(context, attributes)) {
    (*out->mutable_map())[Utf8(context.str(key))] = Utf8(context.str(value));
  }
}

ListId ReadFrontendAttributes(const xla::FrontendAttributes& proto, Context* context) {
  std::vector<FrontendAttribute> entries;
  entries.reserve(proto.map().size());
  for (const auto& [key, value] : proto.map()) {
    entries.emplace_back(context->strings.Intern(key), context->strings.Intern(value));
  }
  return EncodeFrontendAttributes(context, std::move(entries));
}

std::string TextKey(Attr attr) { return StrCat("hlokit.attribute.", ToString(attr)); }

void WriteStatistics(const Context& context, ListId id, xla::StatisticsViz* out) {
  const StatisticsViz statistics = DecodeStatisticsViz(context, id);
  out->set_stat_index_to_visualize(statistics.visualizing_index);
  for (const auto& [name, value] : statistics.values) {
    xla::Statistic* to = out->add_statistics();
    to->set_stat_name(Utf8(context.str(name)));
    to->set_stat_val(value);
  }
}

ListId ReadStatistics(const xla::StatisticsViz& proto, Context* context) {
  StatisticsViz statistics;
  statistics.visualizing_index = proto.stat_index_to_visualize();
  for (const xla::Statistic& statistic : proto.statistics()) {
    statistics.values.emplace_back(context->strings.Intern(statistic.stat_name()), ShortDouble(statistic.stat_val()));
  }
  if (statistics.values.empty()) return context->lists.Intern({});
  return EncodeStatisticsViz(context, statistics);
}

void WriteAccuracy(const Context& context, ListId id, xla::ResultAccuracy* out) {
  const ResultAccuracy accuracy = DecodeResultAccuracy(context, id);
  if (accuracy.mode != ResultAccuracyMode::kTolerance) {
    out->set_mode(accuracy.mode == ResultAccuracyMode::kHighest ? xla::ResultAccuracy::HIGHEST
                                                                : xla::ResultAccuracy::DEFAULT);
    return;
  }
  out->mutable_tolerance()->set_atol(accuracy.atol);
  out->mutable_tolerance()->set_rtol(accuracy.rtol);
  out->mutable_tolerance()->set_ulps(accuracy.ulps);
}

ListId ReadAccuracy(const xla::ResultAccuracy& proto, Context* context) {
  ResultAccuracy accuracy;
  if (proto.has_tolerance()) {
    accuracy = {ResultAccuracyMode::kTolerance, proto.tolerance().atol(), proto.tolerance().rtol(),
                proto.tolerance().ulps()};
  } else if (proto.mode() == xla::ResultAccuracy::HIGHEST) {
    accuracy.mode = ResultAccuracyMode::kHighest;
  }
  return EncodeResultAccuracy(context, accuracy);
}

void WriteOriginalArray(const Context& context, ListId id, xla::OriginalArrayProto* out) {
  const OriginalArray array = DecodeOriginalArray(context, id);
  out->set_instruction_name(Utf8(context.str(array.instruction)));
  out->mutable_shape_index()->Add(array.index.begin(), array.index.end());
}

ListId ReadOriginalArray(const xla::OriginalArrayProto& proto, Context* context) {
  return EncodeOriginalArray(context, {context->strings.Intern(proto.instruction_name()),
                                       {proto.shape_index().begin(), proto.shape_index().end()}});
}

void WriteOriginalValue(const Context& context, ListId id, xla::OriginalValueProto* out) {
  const OriginalValue value = DecodeOriginalValue(context, id);
  out->set_is_synthetic_call(value.synthetic_call);
  std::vector<int64_t> index;  // of the node
  for (const OriginalValue::Node& node : value.nodes) {
    if (node.kind == OriginalValue::Kind::kOpen) {
      index.push_back(0);
      continue;
    }
    if (node.kind == OriginalValue::Kind::kClose) {
      index.pop_back();
    } else {
      xla::OriginalValueElementProto* element = out->add_elements();
      element->mutable_shape_index()->Add(index.begin(), index.end());
      if (node.kind == OriginalValue::Kind::kArray) {
        xla::OriginalArrayProto* array = element->mutable_original_array();
        array->set_instruction_name(Utf8(context.str(node.array.instruction)));
        array->mutable_shape_index()->Add(node.array.index.begin(), node.array.index.end());
      }
    }
    if (!index.empty()) ++index.back();
  }
}

absl::StatusOr<ListId> ReadOriginalValue(const xla::OriginalValueProto& proto, Context* context) {
  OriginalValue value;
  value.synthetic_call = proto.is_synthetic_call();
  if (value.synthetic_call) return EncodeOriginalValue(context, value);
  const auto bad = [] {
    return absl::InvalidArgumentError("original value: the elements are no tree in depth-first order");
  };
  std::vector<int64_t> index;  // where the next element belongs
  const auto close = [&] {
    value.nodes.push_back({OriginalValue::Kind::kClose, {}});
    index.pop_back();
    if (!index.empty()) ++index.back();
  };
  for (int k = 0; k < proto.elements_size(); ++k) {
    const auto& leaf = proto.elements(k).shape_index();
    if (k == 0 ? false : index.empty()) return bad();
    // Leave tuples that the element is not in.
    while (!index.empty()) {
      const size_t depth = index.size();
      const bool same_tuple =
          static_cast<size_t>(leaf.size()) >= depth && std::equal(index.begin(), index.end(), leaf.begin());
      if (same_tuple) break;
      if (depth == 1) return bad();
      close();
    }
    while (static_cast<int>(index.size()) < leaf.size()) {
      if (leaf[static_cast<int>(index.size())] != 0) return bad();
      value.nodes.push_back({OriginalValue::Kind::kOpen, {}});
      index.push_back(0);
    }
    OriginalValue::Node& node = value.nodes.emplace_back();
    if (proto.elements(k).has_original_array()) {
      const xla::OriginalArrayProto& array = proto.elements(k).original_array();
      node.kind = OriginalValue::Kind::kArray;
      node.array = {context->strings.Intern(array.instruction_name()),
                    {array.shape_index().begin(), array.shape_index().end()}};
    }
    if (!index.empty()) ++index.back();
  }
  while (!index.empty()) close();
  if (value.nodes.empty()) value.nodes = {{OriginalValue::Kind::kOpen, {}}, {OriginalValue::Kind::kClose, {}}};
  return EncodeOriginalValue(context, value);
}

}  // namespace hlokit
