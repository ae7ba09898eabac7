// SPDX-License-Identifier: Apache-2.0
#include "ir/text/attribute_text.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "ir/core/double_text.h"
#include "ir/sharding/replica_groups.h"
#include "ir/sharding/sharding.h"
#include "ir/text/frontend_attributes.h"
#include "ir/text/literal_text.h"
#include "ir/text/original_value.h"
#include "ir/text/result_accuracy.h"
#include "ir/text/shape_text.h"
#include "ir/text/sorted_json.h"
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
  // "main" is the default thread.
  if (value.attr == Attr::kAsyncExecutionThread && context_.str(StringId(value.payload)) == "main") return;
  out_ << ", " << info.text << '=';
  PrintValue(value);
}

void AttributePrinter::PrintValue(AttrValue value) {
  using PrintFunction = void (AttributePrinter::*)(AttrValue);
  static constexpr PrintFunction kPrinters[] = {
#define ATTRIBUTE_TYPE(name, payload, elements, syntax, json, description) &AttributePrinter::Print##syntax,
#include "ir/ops/attribute_type_columns.inc"
  };
  (this->*kPrinters[static_cast<size_t>(InfoOf(value.attr).type)])(value);
}

// ---- values other than lists ----

void AttributePrinter::PrintSeparately(AttrValue) {}

void AttributePrinter::PrintBool(AttrValue value) { out_ << (value.payload != 0 ? "true" : "false"); }

void AttributePrinter::PrintInteger(AttrValue value) { out_ << module_.DecodeInt64(value.payload); }

void AttributePrinter::PrintKeyword(AttrValue value) { out_ << EnumTexts(InfoOf(value.attr).enum_type)[value.payload]; }

void AttributePrinter::PrintNumber(AttrValue value) {
  out_ << FormatDouble(static_cast<double>(std::bit_cast<float>(value.payload)), 6);
}

void AttributePrinter::PrintIdentifier(AttrValue value) { out_ << context_.str(StringId(value.payload)); }

void AttributePrinter::PrintSparsityConfig(AttrValue value) { PrintIdentifier(value); }

void AttributePrinter::PrintQuoted(AttrValue value) {
  hlokit::PrintQuoted(out_, context_.str(StringId(value.payload)));
}

void AttributePrinter::PrintQuotedOrBraced(AttrValue value) {
  std::string_view text = context_.str(StringId(value.payload));
  std::optional<std::string> sorted;
  if (options_.sort_backend_config && value.attr == Attr::kBackendConfig) sorted = SortedJson(text);
  if (sorted) text = *sorted;
  if (!text.empty() && text[0] == '{') {
    out_ << text;
  } else {
    hlokit::PrintQuoted(out_, text);
  }
}

void AttributePrinter::PrintComputationName(AttrValue value) {
  PrintName(context_.str(module_.record(ComputationId(value.payload)).name));
}

void AttributePrinter::PrintShape(AttrValue value) {
  hlokit::PrintShape(out_, context_.shape(ShapeId(value.payload)), true);  // XLA prints it with layouts always
}

void AttributePrinter::PrintLiteral(AttrValue value) {
  LiteralTextOptions options;
  options.with_shape = true;
  hlokit::PrintLiteral(out_, context_, LiteralId(value.payload), options);
}

// ---- lists ----

void AttributePrinter::PrintList(AttrValue value) {
  const absl::Span<const int64_t> list = ListOf(value);
  const auto elements = [&](std::string_view separator, auto print) {
    out_ << '{';
    for (size_t i = 0; i < list.size(); ++i) {
      if (i != 0) out_ << separator;
      print(list[i]);
    }
    out_ << '}';
  };
  const auto id = [](int64_t v) { return static_cast<uint32_t>(v); };
  switch (InfoOf(InfoOf(value.attr).type).elements) {
    case ElementKind::kInteger:
      PrintIntegers(list);
      return;
    case ElementKind::kIntegerList:
      out_ << '{';
      for (size_t i = 0; i < list.size(); i += 1 + static_cast<size_t>(list[i])) {
        if (i != 0) out_ << ',';
        PrintIntegers(list.subspan(i + 1, static_cast<size_t>(list[i])));
      }
      out_ << '}';
      return;
    case ElementKind::kBool:
      elements(",", [&](int64_t v) { out_ << (v != 0 ? "true" : "false"); });
      return;
    case ElementKind::kPrecision:
      elements(",", [&](int64_t v) { out_ << EnumTexts(EnumType::kPrecision)[static_cast<size_t>(v)]; });
      return;
    case ElementKind::kComputation:
      elements(", ", [&](int64_t v) { PrintName(context_.str(module_.record(ComputationId(id(v))).name)); });
      return;
    case ElementKind::kInstruction:
      elements(", ", [&](int64_t v) { PrintName(context_.str(module_.record(InstructionId(id(v))).name)); });
      return;
    case ElementKind::kShape:
      elements(", ", [&](int64_t v) { hlokit::PrintShape(out_, context_.shape(ShapeId(id(v)))); });
      return;
    case ElementKind::kString:
      elements(", ", [&](int64_t v) { hlokit::PrintQuoted(out_, context_.str(StringId(id(v)))); });
      return;
    case ElementKind::kMixed:
    case ElementKind::kNone:
      return;  // no type of these has this syntax
  }
}

void AttributePrinter::PrintFrontendAttributes(AttrValue value) {
  hlokit::PrintFrontendAttributes(out_, context_, ListId(value.payload));
}

void AttributePrinter::PrintReplicaGroups(AttrValue value) {
  constexpr int64_t kMaxDevices = int64_t{1} << 22;
  const ListId id(value.payload);
  if (options_.print_full_replica_groups) {
    const auto groups = ExpandReplicaGroups(context_, id, kMaxDevices);
    if (groups.ok()) {
      out_ << '{';
      for (size_t i = 0; i < groups->size(); ++i) {
        if (i != 0) out_ << ',';
        PrintIntegers((*groups)[i]);
      }
      out_ << '}';
      return;
    }
  }
  hlokit::PrintReplicaGroups(out_, context_, id);
}

void AttributePrinter::PrintSharding(AttrValue value) {
  hlokit::PrintSharding(out_, context_, ListId(value.payload), options_.print_metadata);
}

void AttributePrinter::PrintDomain(AttrValue value) {
  const absl::Span<const int64_t> list = ListOf(value);
  out_ << "{kind=\"" << context_.str(StringId(static_cast<uint32_t>(list[0]))) << "\", entry=";
  hlokit::PrintSharding(out_, context_, ListId(static_cast<uint32_t>(list[1])), true);
  out_ << ", exit=";
  hlokit::PrintSharding(out_, context_, ListId(static_cast<uint32_t>(list[2])), true);
  out_ << '}';
}

void AttributePrinter::PrintResultAccuracy(AttrValue value) {
  hlokit::PrintResultAccuracy(out_, context_, ListId(value.payload));
}

void AttributePrinter::PrintStatisticsViz(AttrValue value) {
  hlokit::PrintStatisticsViz(out_, context_, ListId(value.payload));
}

void AttributePrinter::PrintOriginalValue(AttrValue value) {
  hlokit::PrintOriginalValue(out_, context_, ListId(value.payload));
}

void AttributePrinter::PrintIntegers(absl::Span<const int64_t> list) {
  out_ << '{';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i != 0) out_ << ',';
    out_ << list[i];
  }
  out_ << '}';
}

void AttributePrinter::PrintSliceRanges(AttrValue value) {
  const absl::Span<const int64_t> list = ListOf(value);
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

void AttributePrinter::PrintPadding(AttrValue value) {
  const absl::Span<const int64_t> list = ListOf(value);
  bool interior = false;
  for (size_t i = 2; i < list.size(); i += 3) interior |= list[i] != 0;
  for (size_t i = 0; i + 2 < list.size(); i += 3) {
    if (i != 0) out_ << 'x';
    out_ << list[i] << '_' << list[i + 1];
    if (interior) out_ << '_' << list[i + 2];
  }
}

void AttributePrinter::PrintWindow(AttrValue value) {
  const absl::Span<const int64_t> list = ListOf(value);
  // One item for each field that is not at its default everywhere; pad is a pair.
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
  part("size=", 0, 0, !list.empty());
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

void AttributePrinter::PrintConvolutionDims(AttrValue value) {
  const absl::Span<const int64_t> list = ListOf(value);
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

void AttributePrinter::PrintOperandAliasing(AttrValue value) {
  const absl::Span<const int64_t> list = ListOf(value);
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

}  // namespace hlokit
