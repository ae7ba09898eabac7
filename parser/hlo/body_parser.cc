// SPDX-License-Identifier: Apache-2.0
// Computation bodies, heads of instructions and their operands. See module_parser.h for the frames.
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/inference/shape_inference.h"
#include "parser/hlo/element_type_hint.h"
#include "parser/hlo/literal_parser.h"
#include "parser/hlo/module_parser.h"

namespace hlokit {

// ---- frames ----

bool ModuleParser::RunFrames() {
  while (!frames_.empty()) {
    const size_t top = frames_.size() - 1;
    const FrameStatus step = frames_[top].kind == Frame::kBody ? StepBody(top) : StepInstruction(top);
    if (step == FrameStatus::kFailed && !Recover()) return false;
  }
  return true;
}

// Recovers from an error: drops the open instructions of the innermost body and resumes at the next line that begins an
// instruction or closes the body. Returns false if there is no such line, or if recovery is pointless.
bool ModuleParser::Recover() {
  Frame broken;
  bool has_broken = false;
  while (!frames_.empty() && frames_.back().kind == Frame::kInstruction) {
    broken = frames_.back();
    has_broken = true;
    operands_.resize(broken.operands_begin);
    attrs_.resize(broken.attrs_begin);
    frames_.pop_back();
  }
  if (frames_.empty() || sink_->limit_reached()) {
    frames_.clear();
    operands_.clear();
    attrs_.clear();
    return false;
  }
  Frame& body = frames_.back();
  if (has_broken && broken.name.valid() && !broken.nested && !names_.Find(broken.name, body.computation).valid()) {
    // Placeholder for the erroneous instruction, so that its users are not reported too.
    const Shape shape = broken.shape.valid() ? broken.shape : context_->shapes.Token();
    const InstructionId id = module_->AddInstruction(body.computation, Opcode::kUnknown, shape, broken.name, {});
    module_->SetFlag(id, kErrorPlaceholder);
    if (broken.is_root) body.root = id;
    names_.Define(broken.name, id, frames_.size() > 1);
  }
  // The error may have been detected at the beginning of the next line.
  const char* back = in_.cursor();
  while (back[-1] == ' ' || back[-1] == '\t') --back;
  bool at_line_start = has_broken && in_.Here() > broken.name_offset + broken.name_size && back[-1] == '\n';
  for (;;) {
    const char* p = in_.cursor();
    if (!at_line_start) {
      while (p < in_.end() && *p != '\n') ++p;
      if (p >= in_.end()) {
        in_.set_cursor(in_.end());
        frames_.clear();
        return false;
      }
      in_.set_cursor(p + 1);
    }
    at_line_start = false;
    const char c = in_.Peek();
    if (c == '}') return true;
    const char* line = in_.cursor();
    in_.TryConsumeWord("ROOT");
    if (!in_.Name().empty() && in_.Peek() == '=' && char_class::Is(in_.cursor()[1], char_class::kWhitespace)) {
      in_.set_cursor(line);
      return true;
    }
    in_.set_cursor(line);
  }
}

ModuleParser::FrameStatus ModuleParser::StepBody(size_t frame) {
  if (in_.TryConsume('}')) return FinishBody(frame);
  const uint32_t at = in_.Offset();
  if (in_.AtEnd()) {
    Error(DiagnosticKind::kUnexpectedToken, {at, 0}, "the computation has no closing `}`");
    frames_.clear();
    return FrameStatus::kFailed;
  }
  const bool is_root = in_.TryConsumeWord("ROOT");
  in_.SkipWhitespace();
  const uint32_t name_offset = in_.Here();
  const std::string_view name = in_.Name();
  if (name.empty()) {
    in_.ErrorHere(DiagnosticKind::kUnexpectedToken, StrCat("expected an instruction, found ", in_.DescribeNext()));
    return FrameStatus::kFailed;
  }
  const uint32_t name_size = in_.Here() - name_offset;
  Frame& body = frames_[frame];
  if (is_root) {
    if (body.has_root) {
      Error(DiagnosticKind::kDuplicateRoot, {at, 4}, "multiple ROOT instructions in the computation");
      return FrameStatus::kFailed;
    }
    body.has_root = true;
  }
  PushInstruction(body.computation);
  Frame& f = frames_.back();
  f.is_root = is_root;
  f.name = InternView(name);
  f.name_offset = name_offset;
  f.name_size = name_size;
  if (!in_.Expect('=', "after the name of an instruction")) return FrameStatus::kFailed;
  return StepInstruction(frames_.size() - 1);
}

void ModuleParser::PushInstruction(ComputationId computation) {
  Frame& f = frames_.emplace_back();
  f.kind = Frame::kInstruction;
  f.computation = computation;
  f.operands_begin = static_cast<uint32_t>(operands_.size());
  f.attrs_begin = static_cast<uint32_t>(attrs_.size());
}

ModuleParser::FrameStatus ModuleParser::FinishBody(size_t frame) {
  const Frame body = frames_[frame];
  const ComputationId id = body.computation;
  if (!module_->record(id).first.valid()) {
    Error(DiagnosticKind::kUnexpectedToken, {in_.Here() - 1, 1},
          "expected at least one instruction in the computation");
    frames_.pop_back();
    return FrameStatus::kFailed;
  }
  rules_.FinishComputation(id, body.root);
  names_.Leave(body.shadowed_begin);
  frames_.pop_back();
  finished_.push_back(id);
  if (!frames_.empty()) OnComputationParsed(id);
  return FrameStatus::kDone;
}

ModuleParser::FrameStatus ModuleParser::StepInstruction(size_t frame) {
  if (frames_[frame].phase == Frame::kHead && !ParseHead(frames_[frame])) return FrameStatus::kFailed;
  if (frames_[frame].phase == Frame::kOperands) {
    const FrameStatus step = ParseOperands(frame);
    if (step != FrameStatus::kDone) return step;
    frames_[frame].phase = Frame::kAttributes;
  }
  if (!frames_[frame].nested) {
    const FrameStatus step = ParseAttributes(frame);
    if (step != FrameStatus::kDone) return step;
  }
  return FinishInstruction(frame);
}

// ---- head and operands ----

bool ModuleParser::ParseHead(Frame& f) {
  if (!shapes_.TakeKnown(&f.shape) && shapes_.AtShape() && !shapes_.Parse(&f.shape)) return false;
  if (!ParseOpcode(f)) return false;
  if (!in_.Expect('(', "after the opcode")) return false;
  f.phase = Frame::kOperands;
  if (f.opcode == Opcode::kParameter) {
    const uint32_t at = in_.Offset();
    int64_t number;
    if (!in_.Int(&number)) return false;
    if (number < 0 || number > INT32_MAX) {
      return Error(DiagnosticKind::kBadParameter, {at, in_.Here() - at},
                   StrCat("parameter number ", number, " is out of range"));
    }
    f.payload = static_cast<uint32_t>(number);
    if (!in_.Expect(')', "after the parameter number")) return false;
    f.phase = Frame::kAttributes;
  } else if (f.opcode == Opcode::kConstant) {
    if (!f.shape.valid()) {
      return Error(DiagnosticKind::kMissingShape, {f.opcode_offset, f.opcode_size}, "missing shape of a constant");
    }
    LiteralLimits limits;
    limits.budget = &literal_budget_;
    LiteralId literal;
    if (!ParseLiteral(in_, context_.get(), f.shape, limits, &literal)) return false;
    f.payload = literal.value;
    if (!in_.Expect(')', "after the value of a constant")) return false;
    f.phase = Frame::kAttributes;
  }
  return true;
}

bool ModuleParser::ParseOpcode(Frame& f) {
  in_.SkipWhitespace();
  f.opcode_offset = in_.Here();
  const std::string_view word = in_.BareName();
  f.opcode_size = static_cast<uint32_t>(word.size());
  if (const std::optional<Opcode> opcode = OpcodeFromText(word)) {
    f.opcode = *opcode;
    return true;
  }
  if (const std::optional<AsyncSugar> sugar = AsyncSugarFromText(word)) {
    f.opcode = sugar->async_opcode;
    f.wrapped = sugar->wrapped_opcode;
    f.sugar = true;
    return true;
  }
  const SourceRange range{f.opcode_offset, f.opcode_size == 0 ? 1 : f.opcode_size};
  std::vector<std::string_view> names;
  if (!word.empty() && !f.shape.valid() && *in_.cursor() == '[') {
    return Error(DiagnosticKind::kUnknownType, range, StrCat("unknown element type `", word, "`"),
                 ElementTypeHint(word));
  }
  for (size_t i = 0; i < kOpcodeCount; ++i) names.push_back(ToString(static_cast<Opcode>(i)));
  const std::string hint = DidYouMean(word, names);
  if (options_.allow_unknown && !word.empty() && f.shape.valid()) {
    sink_->Warning(DiagnosticKind::kUnknownOpcode, range, StrCat("unknown opcode `", word, "`; preserved"), hint);
    f.opcode = Opcode::kUnknown;
    attrs_.push_back({Attr::kUnknownOpcode, InternView(word).value});
    return true;
  }
  return Error(DiagnosticKind::kUnknownOpcode, range,
               StrCat("expected an opcode, found ",
                      in_.DescribeNext().empty() || !word.empty() ? StrCat('`', word, '`') : in_.DescribeNext()),
               word.empty() || !f.shape.valid() ? hint : UnknownOpcodeHint(hint));
}

bool ModuleParser::ResolveOperand(std::string_view name, SourceRange range, Shape declared, InstructionId* id) {
  const StringId string = InternView(name);
  const ComputationId computation = frames_.back().computation;
  *id = names_.Find(string, computation);
  if (!id->valid()) {
    if (single_instruction_ && declared.valid() && frames_.front().computation == computation) {
      const auto number = static_cast<uint32_t>(module_->record(computation).parameters.size());
      *id = module_->AddInstruction(computation, Opcode::kParameter, declared, string, {}, {}, number);
      names_.Define(string, *id, frames_.size() > 1);
      return true;
    }
    std::vector<std::string_view> names;
    for (Instruction i : module_->computation(computation).instructions()) {
      names.push_back(i.name());
      if (names.size() == 4096) break;
    }
    return Error(DiagnosticKind::kUndefinedOperand, range, StrCat("use of undefined instruction `", name, "`"),
                 DidYouMean(name, names));
  }
  const InstructionRecord& r = module_->record(*id);
  if (r.flags & kErrorPlaceholder) frames_.back().has_error = true;
  if (declared.valid() && !CompatibleIgnoringDynamism(declared, context_->shape(r.shape)) &&
      !(r.flags & kErrorPlaceholder)) {
    return Error(DiagnosticKind::kShapeMismatch, range,
                 StrCat("operand `", name, "` is declared as ", ToString(declared), ", but its shape is ",
                        ToString(context_->shape(r.shape))));
  }
  return true;
}

// Parses `#1#0` after a name: tuple elements, each of which becomes a get-tuple-element with a name derived from the
// tuple's. The text cannot refer to that name, so it may use the same one.
bool ModuleParser::ParseTupleElements(InstructionId* id, ComputationId computation) {
  while (*in_.cursor() == '#') {
    in_.set_cursor(in_.cursor() + 1);
    const SourceRange range = in_.Next();
    int64_t index;
    if (!in_.AtInt() || !in_.Int(&index)) {
      return in_.ErrorHere(DiagnosticKind::kUnexpectedToken, "expected a tuple index after `#`");
    }
    const Shape shape = module_->instruction(*id).shape();
    if (!shape.IsTuple() || index < 0 || index >= shape.tuple_size()) {
      return Error(
          DiagnosticKind::kShapeMismatch, range,
          StrCat("`", module_->instruction(*id).name(), "` of shape ", ToString(shape), " has no element ", index));
    }
    InstructionId& element = tuple_elements_[{id->value, index}];
    if (!element.valid()) {
      const StringId name = context_->strings.Intern(StrCat(module_->instruction(*id).name(), '_', index));
      const AttrValue attr{Attr::kIndex, module_->EncodeInt64(index)};
      element =
          module_->AddInstruction(computation, Opcode::kGetTupleElement, shape.element(index), name, {*id}, {attr});
      derived_names_.insert(element.value);
      duplicate_names_ = true;
    }
    *id = element;
  }
  return true;
}

ModuleParser::FrameStatus ModuleParser::ParseOperands(size_t frame) {
  // After a nested instruction its id is already on operands_: `,` or `)` follows.
  bool expect_operand = operands_.size() == frames_[frame].operands_begin;
  if (expect_operand && in_.TryConsume(')')) return FrameStatus::kDone;
  for (;;) {
    if (!expect_operand) {
      if (in_.TryConsume(')')) return FrameStatus::kDone;
      if (!in_.TryConsume(',')) {
        in_.ErrorHere(DiagnosticKind::kUnexpectedToken,
                      StrCat("expected `,` or `)` after an operand, found ", in_.DescribeNext()));
        return FrameStatus::kFailed;
      }
    }
    in_.SkipWhitespace();
    const char* start = in_.cursor();
    // Nearly every operand is only a name.
    if (*start == '%') {
      in_.set_cursor(start + 1);
      const std::string_view name = in_.BareName();
      const char next = *in_.cursor();
      if (!name.empty() && (next == ',' || next == ')')) {
        const SourceRange range{in_.Here() - static_cast<uint32_t>(name.size()) - 1,
                                static_cast<uint32_t>(name.size()) + 1};
        InstructionId id;
        if (!ResolveOperand(name, range, Shape(), &id)) return FrameStatus::kFailed;
        operands_.push_back(id);
        expect_operand = false;
        continue;
      }
      in_.set_cursor(start);
    }
    Shape declared;
    if (*start != '%' && !shapes_.TakeKnown(&declared) && shapes_.AtShape() && !shapes_.Parse(&declared)) {
      return FrameStatus::kFailed;
    }
    // In a module XLA accepts a comma between shape and name.
    if (declared.valid() && !single_instruction_) in_.TryConsume(',');
    const uint32_t name_offset = in_.Offset();
    const std::string_view name = in_.Name();
    const SourceRange range{name_offset, in_.Here() - name_offset};
    InstructionId id;
    if (name.empty()) {
      // In a lone instruction an operand may be only a shape.
      if (!declared.valid() || !single_instruction_ || frames_[frame].computation != frames_.front().computation) {
        in_.ErrorHere(DiagnosticKind::kUnexpectedToken, StrCat("expected an operand, found ", in_.DescribeNext()));
        return FrameStatus::kFailed;
      }
      const ComputationId computation = frames_[frame].computation;
      const auto number = static_cast<uint32_t>(module_->record(computation).parameters.size());
      const StringId generated = context_->strings.Intern(StrCat('_', number));
      id = module_->AddInstruction(computation, Opcode::kParameter, declared, generated, {}, {}, number);
      names_.Define(generated, id, frames_.size() > 1);
    } else if (*in_.cursor() == '(' || (*in_.cursor() == ' ' && in_.Peek() == '(')) {
      // The name was an opcode: a nested instruction.
      if (static_cast<int64_t>(frames_.size()) >= options_.max_nesting) {
        Error(DiagnosticKind::kTooDeep, range,
              StrCat("operands are nested deeper than the limit of ", options_.max_nesting, " (--max-nesting)"));
        return FrameStatus::kFailed;
      }
      in_.set_cursor(start);
      PushInstruction(frames_[frame].computation);
      frames_.back().nested = true;
      frames_.back().name_offset = name_offset;
      return FrameStatus::kPushed;
    } else if (!ResolveOperand(name, range, *in_.cursor() == '#' ? Shape() : declared, &id)) {
      return FrameStatus::kFailed;
    }
    if (*in_.cursor() == '#' && !ParseTupleElements(&id, frames_[frame].computation)) return FrameStatus::kFailed;
    operands_.push_back(id);
    expect_operand = false;
  }
}

}  // namespace hlokit
