// SPDX-License-Identifier: Apache-2.0
// Attributes of an instruction, among them computations and instructions, which need the scope of the module. The
// values of all other types are read by AttributeParser. See module_parser.h for the frames.
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/graph/complete_attributes.h"
#include "parser/hlo/metadata_parser.h"
#include "parser/hlo/module_parser.h"

namespace hlokit {
namespace {

// Returns true if the text of a value may be in braces and its payload follows from that text alone.
bool HasMemoizableText(AttrType type) {
  const ElementKind elements = InfoOf(type).elements;
  if (elements == ElementKind::kComputation || elements == ElementKind::kInstruction) return false;
  return type == AttrType::kStringOrJson || HoldsList(type);
}

}  // namespace

ModuleParser::FrameStatus ModuleParser::ParseAttributes(size_t frame) {
  if (frames_[frame].in_list) {
    const FrameStatus step = ContinueComputationList(frame);
    if (step != FrameStatus::kDone) return step;
  }
  while (in_.TryConsume(',')) {
    const FrameStatus step = ParseAttribute(frame);
    if (step != FrameStatus::kDone) return step;
  }
  return FrameStatus::kDone;
}

ModuleParser::FrameStatus ModuleParser::ParseAttribute(size_t frame) {
  Frame& f = frames_[frame];
  in_.SkipWhitespace();
  const uint32_t name_offset = in_.Here();
  const std::string_view name = in_.BareName();
  const SourceRange range{name_offset, static_cast<uint32_t>(name.size())};
  if (name.empty()) {
    in_.ErrorHere(DiagnosticKind::kUnexpectedToken, StrCat("expected an attribute, found ", in_.DescribeNext()));
    return FrameStatus::kFailed;
  }
  if (!in_.Expect('=', "after the name of an attribute")) return FrameStatus::kFailed;
  // The attribute of this name that the opcode (or, under sugar, the wrapped opcode) has.
  Attr attr = Attr::kUnknownAttributes;
  for (Attr candidate : AttrsFromText(name)) {
    if (FindAttrSpec(f.opcode, candidate) != nullptr ||
        (f.sugar && f.opcode == Opcode::kAsyncStart && FindAttrSpec(f.wrapped, candidate) != nullptr)) {
      attr = candidate;
      break;
    }
  }
  if (name == "order" && f.opcode == Opcode::kCompare) return ParseComparisonOrder(frame, range);
  if (attr == Attr::kUnknownAttributes) {
    std::vector<std::string_view> names;
    for (Opcode opcode : {f.opcode, f.sugar ? f.wrapped : f.opcode}) {
      for (const AttrSpec& spec : InfoOf(opcode).attributes) names.push_back(ToString(spec.attr));
    }
    for (size_t i = 0; i < kAttrCount; ++i) {
      if (IsCommon(static_cast<Attr>(i)) && !kAttrInfo[i].text.empty()) names.push_back(kAttrInfo[i].text);
    }
    const std::string hint =
        AttrsFromText(name).empty() ? DidYouMean(name, names) : StrCat("other opcodes take `", name, "`");
    if (options_.allow_unknown) {
      const std::string_view text = in_.RawValue();
      sink_->Warning(DiagnosticKind::kUnknownAttribute, range,
                     StrCat("unknown attribute `", name, "` for ", ToString(f.opcode), "; preserved"), hint);
      list_.clear();
      if (AttrValue* known = AttrsOf(f).Find(Attr::kUnknownAttributes)) {
        const absl::Span<const int64_t> old = context_->list(ListId(known->payload));
        list_.assign(old.begin(), old.end());
      } else {
        attrs_.push_back({Attr::kUnknownAttributes, 0});
      }
      list_.push_back(InternView(name).value);
      list_.push_back(InternView(text).value);
      AttrsOf(frames_[frame]).Find(Attr::kUnknownAttributes)->payload = module_->ListPayload(list_);
      return FrameStatus::kDone;
    }
    Error(DiagnosticKind::kUnknownAttribute, range, StrCat("unknown attribute `", name, "` for ", ToString(f.opcode)),
          hint);
    return FrameStatus::kFailed;
  }
  if (attr == Attr::kMetadata) {
    if (f.metadata.valid()) {
      Error(DiagnosticKind::kDuplicateAttribute, range, "duplicate attribute `metadata`");
      return FrameStatus::kFailed;
    }
    Repeated repeated;
    if (TakeRepeated(attr, &repeated, &f.metadata.value)) return FrameStatus::kDone;
    if (!ParseMetadata(in_, context_.get(), &f.metadata, &frame_numbering_)) return FrameStatus::kFailed;
    Remember(attr, repeated, f.metadata.value);
    return FrameStatus::kDone;
  }
  if (AttrsOf(f).Find(attr) != nullptr) {
    Error(DiagnosticKind::kDuplicateAttribute, range, StrCat("duplicate attribute `", name, "`"));
    return FrameStatus::kFailed;
  }
  const AttrType type = InfoOf(attr).type;
  if (InfoOf(type).payload == PayloadKind::kComputation) return ParseComputationValue(frame, attr);
  if (InfoOf(type).elements == ElementKind::kComputation) {
    if (!in_.Expect('{', "before a list of computations")) return FrameStatus::kFailed;
    f.pending = attr;
    f.in_list = true;
    f.list_begin = static_cast<uint32_t>(computation_list_.size());
    return ContinueComputationList(frame);
  }
  uint32_t payload = 0;
  Repeated repeated;
  if (InfoOf(type).elements == ElementKind::kInstruction) {
    if (!ParseInstructionList(f.computation, &payload)) return FrameStatus::kFailed;
  } else if (!HasMemoizableText(type) || !TakeRepeated(attr, &repeated, &payload)) {
    if (!attribute_parser_.Parse(attr, &payload)) return FrameStatus::kFailed;
    Remember(attr, repeated, payload);
  }
  attrs_.push_back({attr, payload});
  return FrameStatus::kDone;
}

// order=TOTAL or PARTIAL, for which older text has a type.
ModuleParser::FrameStatus ModuleParser::ParseComparisonOrder(size_t frame, SourceRange name) {
  const Frame& f = frames_[frame];
  const SourceRange range = in_.Next();
  const std::string_view word = in_.BareName();
  if (word != "TOTAL" && word != "PARTIAL") {
    Error(DiagnosticKind::kUnexpectedToken, range, "expected TOTAL or PARTIAL");
    return FrameStatus::kFailed;
  }
  if (AttrsOf(f).Find(Attr::kCompareType) != nullptr) {
    Error(DiagnosticKind::kDuplicateAttribute, name, "a compare has either `order` or `type`");
    return FrameStatus::kFailed;
  }
  const Shape operand =
      operands_.size() > f.operands_begin ? module_->instruction(operands_[f.operands_begin]).shape() : Shape();
  const ElementType type = operand.valid() && operand.IsArray() ? operand.element_type() : ElementType::kF32;
  const std::optional<ComparisonType> comparison = ComparisonOfOrder(word == "TOTAL", type);
  if (comparison) attrs_.push_back({Attr::kCompareType, static_cast<uint32_t>(*comparison)});
  return FrameStatus::kDone;
}

bool ModuleParser::ParseInstructionList(ComputationId computation, uint32_t* payload) {
  list_.clear();
  if (!in_.Expect('{', "before a list of instructions")) return false;
  if (!in_.TryConsume('}')) {
    do {
      const SourceRange range = in_.Next();
      std::string_view name;
      if (!in_.ExpectName(&name, "an instruction name")) return false;
      const StringId id = context_->strings.Find(name);
      const InstructionId found = id.valid() ? names_.Find(id, computation) : InstructionId();
      if (!found.valid()) {
        return Error(DiagnosticKind::kUndefinedOperand, range, StrCat("use of undefined instruction `", name, "`"));
      }
      list_.push_back(found.value);
    } while (in_.TryConsume(','));
    if (!in_.Expect('}', "after a list of instructions")) return false;
  }
  *payload = module_->ListPayload(list_);
  return true;
}

bool ModuleParser::TakeRepeated(Attr attr, Repeated* repeated, uint32_t* payload) {
  const std::string_view text = repeated->text = in_.PeekBraced();
  if (text.empty()) return false;
  repeated->warnings = sink_->warning_count();
  const uint32_t* known = values_->Find(text, static_cast<uint32_t>(attr));
  if (known == nullptr) return false;
  in_.set_cursor(text.data() + text.size());
  *payload = *known;
  return true;
}

void ModuleParser::Remember(Attr attr, const Repeated& repeated, uint32_t payload) {
  const std::string_view text = repeated.text;
  if (text.empty() || in_.cursor() != text.data() + text.size() || sink_->warning_count() != repeated.warnings) return;
  values_->Set(text, static_cast<uint32_t>(attr), payload);
}

ModuleParser::FrameStatus ModuleParser::ContinueComputationList(size_t frame) {
  // At the first element, or after one.
  for (;;) {
    const bool first = computation_list_.size() == frames_[frame].list_begin;
    if (in_.TryConsume('}')) break;
    if (!first) {
      if (!in_.Expect(',', "in a list of computations")) return FrameStatus::kFailed;
    }
    const size_t before = computation_list_.size();
    const FrameStatus step = ParseComputationValue(frame, frames_[frame].pending);
    if (step != FrameStatus::kDone) return step;
    if (computation_list_.size() == before) return FrameStatus::kFailed;
  }
  Frame& f = frames_[frame];
  const uint32_t payload = module_->ListPayload(absl::MakeConstSpan(computation_list_).subspan(f.list_begin));
  computation_list_.resize(f.list_begin);
  f.in_list = false;
  attrs_.push_back({f.pending, payload});
  return FrameStatus::kDone;
}

ModuleParser::FrameStatus ModuleParser::ParseComputationValue(size_t frame, Attr attr) {
  if (in_.Peek() == '{') {
    if (static_cast<int64_t>(frames_.size()) >= options_.max_nesting) {
      in_.ErrorHere(DiagnosticKind::kTooDeep, StrCat("computations are nested deeper than the limit of ",
                                                     options_.max_nesting, " (--max-nesting)"));
      return FrameStatus::kFailed;
    }
    const uint32_t brace = in_.Offset();
    in_.TryConsume('{');
    const char* const begin = in_.cursor();
    if (const std::string_view first = in_.Name(); !first.empty() && (in_.Peek() == '}' || in_.Peek() == ',')) {
      while (in_.TryConsume(',') && !in_.Name().empty()) continue;
      in_.TryConsume('}');
      Error(DiagnosticKind::kUnexpectedToken, {brace, in_.Here() - brace}, "expected a computation, found a list",
            StrCat("`", ToString(attr), "` is one computation: ", ToString(attr), "=%", first));
      return FrameStatus::kFailed;
    }
    in_.set_cursor(begin);
    frames_[frame].pending = attr;
    Frame& body = frames_.emplace_back();
    body.kind = Frame::kBody;
    body.inline_body = true;
    duplicate_names_ = true;  // all are called "_"
    body.shadowed_begin = static_cast<uint32_t>(names_.shadowed());
    body.computation = module_->AddComputation(context_->strings.Intern("_"));
    return FrameStatus::kPushed;
  }
  const uint32_t at = in_.Offset();
  std::string_view name;
  if (!in_.ExpectName(&name, "the name of a computation")) return FrameStatus::kFailed;
  const StringId string = InternView(name);
  const ComputationId id =
      string.value < computation_of_name_.size() ? computation_of_name_[string.value] : ComputationId();
  if (!id.valid()) {
    std::vector<std::string_view> names;
    for (ComputationId known : finished_) {
      names.push_back(module_->computation(known).name());
      if (names.size() == 4096) break;
    }
    Error(DiagnosticKind::kUndefinedComputation, {at, in_.Here() - at},
          StrCat("use of undefined computation `", name, "`"), DidYouMean(name, names));
    return FrameStatus::kFailed;
  }
  if (frames_[frame].in_list) {
    computation_list_.push_back(id.value);
  } else {
    attrs_.push_back({attr, id.value});
  }
  return FrameStatus::kDone;
}

void ModuleParser::OnComputationParsed(ComputationId id) {
  Frame& f = frames_.back();
  if (f.in_list) {
    computation_list_.push_back(id.value);
  } else {
    attrs_.push_back({f.pending, id.value});
  }
}

}  // namespace hlokit
