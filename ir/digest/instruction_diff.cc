// SPDX-License-Identifier: Apache-2.0
#include "ir/digest/instruction_diff.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "ir/digest/fingerprint_internal.h"
#include "ir/text/literal_text.h"
#include "ir/text/printer.h"

namespace hlokit {
namespace {

std::string Hex(const std::byte* data, size_t size) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text = "0x";
  for (size_t i = size; i-- > 0;) {
    text += kHex[std::to_integer<int>(data[i]) >> 4];
    text += kHex[std::to_integer<int>(data[i]) & 15];
  }
  return text;
}

// Returns two different elements. Those with equal text, such as some NaNs, are followed by their bits.
std::string ElementsToString(ElementType type, const std::byte* a, const std::byte* b) {
  std::string text_a, text_b;
  {
    TextWriter out_a(&text_a), out_b(&text_b);
    AppendScalar(out_a, type, a);
    AppendScalar(out_b, type, b);
  }
  const std::string text = StrCat(text_a, " vs ", text_b);
  const size_t width = static_cast<size_t>(BytesOf(type));
  return text_a != text_b ? text : StrCat(text, " (", Hex(a, width), " vs ", Hex(b, width), ")");
}

std::string MetadataToString(Instruction i) {
  if (!i.metadata_id().valid()) return "absent";
  std::string text;
  {
    TextWriter out(&text);
    PrintMetadata(out, i.module().context(), i.metadata_id());
  }
  return text;
}

class InstructionComparison {
 public:
  InstructionComparison(Instruction a, Instruction b, const FingerprintOptions& options)
      : a_(a), b_(b), options_(options) {
    print_.print_metadata = options_.metadata;
    print_.include_layout_in_shapes = options_.layout;
  }

  std::vector<InstructionDifference> Run() {
    if (a_.opcode() != b_.opcode() || a_.opcode_text() != b_.opcode_text()) {
      Report(Kind::kOpcode, StrCat("opcode: ", Versus(a_.opcode_text(), b_.opcode_text())));
    }
    CompareShapes();
    if (a_.opcode() != b_.opcode()) return std::move(differences_);
    if (a_.operand_count() != b_.operand_count()) {
      Report(Kind::kOperandCount, StrCat("operands: ", a_.operand_count(), " vs ", b_.operand_count()));
    }
    for (const AttrValue& value : a_.attrs()) CompareAttr(value, /*in_a=*/true);
    for (const AttrValue& value : b_.attrs()) CompareAttr(value, /*in_a=*/false);
    if (a_.opcode() == Opcode::kConstant) CompareLiterals(a_.literal_id(), b_.literal_id());
    if (a_.opcode() == Opcode::kParameter && a_.parameter_number() != b_.parameter_number()) {
      Report(Kind::kValue, StrCat("parameter number: ", a_.parameter_number(), " vs ", b_.parameter_number()));
    }
    if (options_.metadata) {
      const std::string text_a = MetadataToString(a_), text_b = MetadataToString(b_);
      if (text_a != text_b) Report(Kind::kMetadata, StrCat("metadata: ", Versus(text_a, text_b)));
    }
    return std::move(differences_);
  }

 private:
  using Kind = InstructionDifference::Kind;

  void Report(Kind kind, std::string text) { differences_.push_back({kind, std::move(text)}); }

  void CompareShapes() {
    const std::string a = ToString(a_.shape(), options_.layout), b = ToString(b_.shape(), options_.layout);
    if (a == b) return;
    const bool only_layout = SameShape(a_.shape(), b_.shape(), /*ignore_layout=*/true);
    Report(only_layout ? Kind::kLayout : Kind::kShape, StrCat("shape: ", Versus(a, b)));
  }

  std::string AttrToString(Instruction i, const AttrValue& value) const {
    PrintOptions print = print_;
    // Lists of shapes exist for their layouts.
    if (InfoOf(value.attr).type == AttrType::kShapeList) print.include_layout_in_shapes = true;
    std::string text;
    TextWriter out(&text);
    PrintAttrValue(out, i.module(), value, print);
    out.Flush();
    return text;
  }

  // Compares an attribute that a has, or one that only b may have.
  void CompareAttr(const AttrValue& value, bool in_a) {
    const AttrInfo& info = InfoOf(value.attr);
    if (!options_.Includes(info.category)) return;
    const Kind kind = KindOf(info.category);
    const Instruction at = in_a ? a_ : b_, other = in_a ? b_ : a_;
    const std::optional<uint32_t> payload = other.payload(value.attr);
    if (!payload.has_value()) {
      const std::string text = Shorten(AttrToString(at, value), kMaxValue);
      Report(kind,
             StrCat("attribute ", ToString(value.attr), ": ", in_a ? text : "absent", " vs ", in_a ? "absent" : text));
    } else if (!in_a) {
      return;
    } else if (info.type == AttrType::kLiteral) {
      CompareLiterals(LiteralId(value.payload), LiteralId(*payload), "literal", kind);
    } else if (info.type == AttrType::kInstructionList) {
      if (a_.control_predecessors().size() != b_.control_predecessors().size()) {
        Report(kind, StrCat("control predecessors: ", a_.control_predecessors().size(), " vs ",
                            b_.control_predecessors().size()));
      }
    } else if (NamesComputations(value.attr)) {
      if (!HoldsList(info.type)) return;
      const size_t size_a = at.module().context().list(ListId(value.payload)).size();
      const size_t size_b = other.module().context().list(ListId(*payload)).size();
      if (size_a != size_b) {
        Report(kind, StrCat("attribute ", ToString(value.attr), ": ", size_a, " computations vs ", size_b));
      }
    } else {
      const std::string text_a = AttrToString(at, value), text_b = AttrToString(other, {value.attr, *payload});
      if (text_a != text_b) Report(kind, StrCat("attribute ", ToString(value.attr), ": ", Versus(text_a, text_b)));
    }
  }

  static Kind KindOf(AttrCategory category) {
    switch (category) {
      case AttrCategory::kSharding:
        return Kind::kSharding;
      case AttrCategory::kFrontend:
        return Kind::kFrontendAttributes;
      case AttrCategory::kSemantic:
        return Kind::kAttribute;
      case AttrCategory::kAnnotation:
        return Kind::kMetadata;
    }
    return Kind::kAttribute;
  }

  void CompareLiterals(LiteralId a, LiteralId b, std::string_view what = "value", Kind kind = Kind::kValue) {
    struct Pair {
      LiteralId a, b;
      std::string index;
    };
    // Visits both tuples in parallel, depth first, up to the first leaf that differs.
    std::vector<Pair> stack{{a, b, ""}};
    while (!stack.empty()) {
      const Pair at = std::move(stack.back());
      stack.pop_back();
      const LiteralRecord& la = a_.module().context().literals[at.a];
      const LiteralRecord& lb = b_.module().context().literals[at.b];
      const std::string where = at.index.empty() ? std::string(what) : StrCat(what, " at tuple index ", at.index);
      if (!SameShape(la.shape, lb.shape, /*ignore_layout=*/true)) {
        Report(kind,
               StrCat(where, ": ", Versus(ToString(la.shape, options_.layout), ToString(lb.shape, options_.layout))));
        return;
      }
      if (la.elided != lb.elided) {
        Report(kind, StrCat(where, ": ", la.elided ? "elided vs known" : "known vs elided"));
        return;
      }
      if (la.elided) continue;
      if (la.shape.IsTuple()) {
        for (int64_t i = la.shape.tuple_size(); i-- > 0;) {
          stack.push_back({la.elements[i], lb.elements[i], StrCat(Shorten(at.index, kMaxValue), "{", i, "}")});
        }
        continue;
      }
      const size_t width = std::max<size_t>(1, static_cast<size_t>(BytesOf(la.shape.element_type())));
      const size_t count = std::min(la.size_bytes, lb.size_bytes) / width;
      size_t different = 0, first = 0;
      for (size_t i = count; i-- > 0;) {
        if (std::equal(la.data + i * width, la.data + (i + 1) * width, lb.data + i * width)) continue;
        first = i;
        ++different;
      }
      if (different == 0) continue;
      Report(kind, StrCat(where, ": ", different, " of ", count, " elements differ, first at ", first, ": ",
                          ElementsToString(la.shape.element_type(), la.data + first * width, lb.data + first * width)));
      return;
    }
  }

  const Instruction a_, b_;
  const FingerprintOptions options_;
  PrintOptions print_;
  std::vector<InstructionDifference> differences_;
};

}  // namespace

std::vector<InstructionDifference> InstructionDifferences(Instruction a, Instruction b,
                                                          const FingerprintOptions& options) {
  return InstructionComparison(a, b, options).Run();
}

}  // namespace hlokit
