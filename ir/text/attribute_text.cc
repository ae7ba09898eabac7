// SPDX-License-Identifier: Apache-2.0
#include "ir/text/attribute_text.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <vector>

#include "ir/sharding/replica_groups.h"
#include "ir/sharding/sharding.h"
#include "ir/text/frontend_attributes.h"
#include "ir/text/literal_text.h"
#include "ir/text/original_value.h"
#include "ir/text/result_accuracy.h"
#include "ir/text/shape_text.h"
#include "ir/text/statistics_viz.h"

namespace hlokit {

bool HasMetadataToPrint(const Context& context, const Metadata& m) {
  const auto said = [&context](StringId id) { return id.valid() && !context.str(id).empty(); };
  return said(m.op_type) || said(m.op_name) || said(m.source_file) || said(m.scheduling_name) ||
         said(m.deduplicated_name) || said(m.payload) || m.stack_frame_id != 0 || m.profile_types.valid();
}

void AttributePrinter::PrintName(std::string_view name) {
  if (options_.print_percent) out_ << '%';
  out_ << (options_.print_ids ? name : name.substr(0, name.find('.')));
}

void AttributePrinter::Print(AttrValue value) {
  const AttrInfo& info = InfoOf(value.attr);
  if (value.attr == Attr::kUnknownAttributes) {
    const absl::Span<const int64_t> list = context_.list(ListId(value.payload));
    for (size_t i = 0; i + 1 < list.size(); i += 2) {
      out_ << ", " << context_.str(StringId(static_cast<uint32_t>(list[i]))) << '='
           << context_.str(StringId(static_cast<uint32_t>(list[i + 1])));
    }
    return;
  }
  if (value.attr == Attr::kUnknownOpcode) return;
  if (value.attr == Attr::kControlPredecessors && !options_.print_control_dependencies) return;
  if (value.attr == Attr::kBackendConfig && !options_.print_backend_config) return;
  if (value.attr == Attr::kOrigin && !options_.print_original_value) return;
  if (value.attr == Attr::kParameterReplication && !options_.print_ids) return;  // as XLA
  if (value.attr == Attr::kSharding && !options_.print_sharding) return;
  if (value.attr == Attr::kFrontendAttributes && !options_.print_frontend_attributes) return;
  if ((value.attr == Attr::kInfeedConfig || value.attr == Attr::kOutfeedConfig) &&
      !options_.print_infeed_outfeed_config) {
    return;
  }
  // "main" is where everything runs that does not say otherwise.
  if (value.attr == Attr::kAsyncExecutionThread && context_.str(StringId(value.payload)) == "main") return;
  out_ << ", " << info.text << '=';
  PrintValue(value);
}

void AttributePrinter::PrintValue(AttrValue value) {
  const AttrInfo& info = InfoOf(value.attr);
  const uint32_t payload = value.payload;
  const absl::Span<const int64_t> list =
      HoldsList(info.type) ? context_.list(ListId(payload)) : absl::Span<const int64_t>();
  switch (info.type) {
    case AttrType::kBool:
      out_ << (payload ? "true" : "false");
      return;
    case AttrType::kInt64:
      out_ << module_.DecodeInt64(payload);
      return;
    case AttrType::kEnum:
      out_ << EnumTexts(info.enum_type)[payload];
      return;
    case AttrType::kFloat: {
      char buffer[40];
      const int n = std::snprintf(buffer, sizeof(buffer), "%g", static_cast<double>(std::bit_cast<float>(payload)));
      out_ << std::string_view(buffer, static_cast<size_t>(n));
      return;
    }
    case AttrType::kString:
      PrintQuoted(out_, context_.str(StringId(payload)));
      return;
    case AttrType::kStringOrJson: {
      const std::string_view text = context_.str(StringId(payload));
      if (!text.empty() && text[0] == '{') {
        out_ << text;
      } else {
        PrintQuoted(out_, text);
      }
      return;
    }
    case AttrType::kIdentifier:
    case AttrType::kSparsity:
      out_ << context_.str(StringId(payload));
      return;
    case AttrType::kComputation:
      PrintName(context_.str(module_.record(ComputationId(payload)).name));
      return;
    case AttrType::kShape:
      PrintShape(out_, context_.shape(ShapeId(payload)), options_.include_layout_in_shapes);
      return;
    case AttrType::kLiteral:
      PrintLiteralAttr(LiteralId(payload));
      return;
    case AttrType::kMetadata:
      return;
    case AttrType::kInt64List:
      PrintList(list);
      return;
    case AttrType::kInt64ListList:
      PrintListList(list, ",");
      return;
    case AttrType::kBoolList:
      out_ << '{';
      for (size_t i = 0; i < list.size(); ++i) out_ << (i == 0 ? "" : ",") << (list[i] ? "true" : "false");
      out_ << '}';
      return;
    case AttrType::kPrecisionList:
      out_ << '{';
      for (size_t i = 0; i < list.size(); ++i) {
        out_ << (i == 0 ? "" : ",") << EnumTexts(EnumType::kPrecision)[static_cast<size_t>(list[i])];
      }
      out_ << '}';
      return;
    case AttrType::kComputationList:
      out_ << '{';
      for (size_t i = 0; i < list.size(); ++i) {
        if (i != 0) out_ << ", ";
        PrintName(context_.str(module_.record(ComputationId(static_cast<uint32_t>(list[i]))).name));
      }
      out_ << '}';
      return;
    case AttrType::kInstructionList:
      out_ << '{';
      for (size_t i = 0; i < list.size(); ++i) {
        if (i != 0) out_ << ", ";
        PrintName(context_.str(module_.record(InstructionId(static_cast<uint32_t>(list[i]))).name));
      }
      out_ << '}';
      return;
    case AttrType::kShapeList:
      out_ << '{';
      for (size_t i = 0; i < list.size(); ++i) {
        if (i != 0) out_ << ", ";
        PrintShape(out_, context_.shape(ShapeId(static_cast<uint32_t>(list[i]))));
      }
      out_ << '}';
      return;
    case AttrType::kSliceRanges:
      PrintSliceRanges(list);
      return;
    case AttrType::kPadding:
      PrintPadding(list);
      return;
    case AttrType::kWindow:
      PrintWindow(list);
      return;
    case AttrType::kConvolutionDims:
      PrintConvolutionDims(list);
      return;
    case AttrType::kOperandAliasing:
      PrintOperandAliasing(list);
      return;
    case AttrType::kFrontendAttributes:
      PrintFrontendAttributes(out_, context_, ListId(payload));
      return;
    case AttrType::kReplicaGroups:
      if (options_.print_full_replica_groups) {
        PrintFullReplicaGroups(ListId(payload));
      } else {
        PrintReplicaGroups(out_, context_, ListId(payload));
      }
      return;
    case AttrType::kSharding:
      PrintSharding(out_, context_, ListId(payload), options_.print_metadata);
      return;
    case AttrType::kDomain:
      out_ << "{kind=\"" << context_.str(StringId(static_cast<uint32_t>(list[0]))) << "\", entry=";
      PrintSharding(out_, context_, ListId(static_cast<uint32_t>(list[1])), true);
      out_ << ", exit=";
      PrintSharding(out_, context_, ListId(static_cast<uint32_t>(list[2])), true);
      out_ << '}';
      return;
    case AttrType::kResultAccuracy:
      PrintResultAccuracy(out_, context_, ListId(payload));
      return;
    case AttrType::kStatistics:
      PrintStatisticsViz(out_, context_, ListId(payload));
      return;
    case AttrType::kOrigin:
      PrintOriginalValue(out_, context_, ListId(payload));
      return;
    case AttrType::kUnknown:
      return;
  }
}

void AttributePrinter::PrintList(absl::Span<const int64_t> list) {
  out_ << '{';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i != 0) out_ << ',';
    out_ << list[i];
  }
  out_ << '}';
}

void AttributePrinter::PrintListList(absl::Span<const int64_t> list, std::string_view separator) {
  out_ << '{';
  for (size_t i = 0; i < list.size();) {
    if (i != 0) out_ << separator;
    const auto n = static_cast<size_t>(list[i]);
    PrintList(list.subspan(i + 1, n));
    i += 1 + n;
  }
  out_ << '}';
}

void AttributePrinter::PrintSliceRanges(absl::Span<const int64_t> list) {
  // Strides are printed for all dimensions or none.
  bool strided = false;
  for (size_t i = 2; i < list.size(); i += 3) strided |= list[i] != 1;
  out_ << '{';
  for (size_t i = 0; i + 2 < list.size(); i += 3) {
    out_ << (i == 0 ? "[" : ", [") << list[i] << ':' << list[i + 1];
    if (strided) out_ << ':' << list[i + 2];
    out_ << ']';
  }
  out_ << '}';
}

void AttributePrinter::PrintPadding(absl::Span<const int64_t> list) {
  bool interior = false;
  for (size_t i = 2; i < list.size(); i += 3) interior |= list[i] != 0;
  for (size_t i = 0; i + 2 < list.size(); i += 3) {
    if (i != 0) out_ << 'x';
    out_ << list[i] << '_' << list[i + 1];
    if (interior) out_ << '_' << list[i + 2];
  }
}

void AttributePrinter::PrintWindow(absl::Span<const int64_t> list) {
  // One part for each field that is not everywhere at its default; pad is a pair.
  constexpr size_t kFields = 7;
  const auto part = [&](std::string_view name, size_t field, int64_t absent, bool always) {
    bool any = always;
    for (size_t i = field; i < list.size(); i += kFields) any |= list[i] != absent;
    if (!any) return;
    out_ << name;
    for (size_t i = 0; i < list.size(); i += kFields) {
      if (i != 0) out_ << 'x';
      out_ << list[i + field];
    }
  };
  out_ << '{';
  part("size=", 0, 0, true);
  part(" stride=", 1, 1, false);
  bool padded = false;
  for (size_t i = 0; i < list.size(); i += kFields) padded |= list[i + 2] != 0 || list[i + 3] != 0;
  if (padded) {
    out_ << " pad=";
    for (size_t i = 0; i < list.size(); i += kFields) {
      if (i != 0) out_ << 'x';
      out_ << list[i + 2] << '_' << list[i + 3];
    }
  }
  part(" lhs_dilate=", 4, 1, false);
  part(" rhs_dilate=", 5, 1, false);
  part(" rhs_reversal=", 6, 0, false);
  out_ << '}';
}

void AttributePrinter::PrintConvolutionDims(absl::Span<const int64_t> list) {
  if (list.empty()) return;
  const auto spatial = static_cast<size_t>(list[0]);
  static constexpr std::string_view kLetters[] = {"bf", "io", "bf"};
  for (size_t part = 0; part < 3; ++part) {
    const absl::Span<const int64_t> dims = list.subspan(1 + part * (2 + spatial), 2 + spatial);
    int64_t size = static_cast<int64_t>(dims.size());
    for (int64_t d : dims) size = std::max(size, d + 1);
    std::vector<char> text(static_cast<size_t>(size), '?');
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] >= 0) text[dims[i]] = i < 2 ? kLetters[part][i] : static_cast<char>('0' + (i - 2));
    }
    out_ << std::string_view(text.data(), text.size()) << (part == 0 ? "_" : part == 1 ? "->" : "");
  }
}

void AttributePrinter::PrintOperandAliasing(absl::Span<const int64_t> list) {
  const auto index = [&](size_t* i) {
    const auto n = static_cast<size_t>(list[*i]);
    out_ << '{';
    for (size_t k = 0; k < n; ++k) {
      if (k != 0) out_ << ',';
      out_ << list[*i + 1 + k];
    }
    out_ << '}';
    *i += 1 + n;
  };
  out_ << '{';
  for (size_t i = 0; i < list.size();) {
    if (i != 0) out_ << ", ";
    index(&i);
    out_ << ": (" << list[i++] << ", ";
    index(&i);
    out_ << ')';
  }
  out_ << '}';
}

void AttributePrinter::PrintFullReplicaGroups(ListId id) {
  constexpr int64_t kMaxDevices = int64_t{1} << 22;
  const auto groups = ExpandReplicaGroups(context_, id, kMaxDevices);
  if (!groups.ok()) {
    PrintReplicaGroups(out_, context_, id);
    return;
  }
  out_ << '{';
  for (size_t i = 0; i < groups->size(); ++i) {
    if (i != 0) out_ << ',';
    PrintList((*groups)[i]);
  }
  out_ << '}';
}

void AttributePrinter::PrintLiteralAttr(LiteralId id) {
  LiteralTextOptions options;
  options.with_shape = true;
  PrintLiteral(out_, context_, id, options);
}

}  // namespace hlokit
