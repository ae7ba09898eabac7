// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/module_parser.h"

#include <algorithm>
#include <utility>

#include "ir/core/name_uniquer.h"
#include "ir/core/str_cat.h"
#include "ir/inference/shape_inference.h"

namespace hlokit {

ModuleParser::ModuleParser(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                           const ParseOptions& options, DiagnosticSink* sink, std::shared_ptr<Context> context)
    : source_(std::move(source)),
      options_(options),
      sink_(sink),
      context_(std::move(context)),
      module_(std::make_unique<Module>(context_)),
      in_(text, sink, static_cast<uint32_t>(text.data() - source_->text().data())),
      shapes_(&in_, context_.get(), options_.max_nesting, "--max-nesting"),
      attribute_parser_(&in_, context_.get(), &shapes_, &literal_budget_),
      names_(module_.get()),
      rules_(module_.get(), sink) {
  literal_budget_.bytes = ByteLimit(options_.max_literal_bytes);
  // Dumps have about 200 bytes, 2 operands and 2 attributes per instruction.
  const size_t guess = text.size() / 220;
  module_->Reserve(guess, guess * 3 / 2, guess);
  // Names and metadata. Building the index fills it, so a text of long constants gets a small one.
  constexpr size_t kMaxStrings = size_t{1} << 15;
  if (guess > 64) context_->strings.Reserve(context_->strings.size() + std::min(guess * 9 / 8, kMaxStrings));
}

std::unique_ptr<Module> ModuleParser::Run() {
  const size_t errors = sink_->error_count();
  ParseModuleLevel();
  if (sink_->error_count() != errors) {
    if (options_.check_shapes_after_errors) CheckSoundShapes();
    return nullptr;
  }
  if (!FinishModule()) return nullptr;
  return std::move(module_);
}

bool ModuleParser::ParseModuleLevel() {
  if (in_.AtEnd()) {
    return in_.ErrorHere(DiagnosticKind::kUnexpectedToken, "expected a module, found an empty text",
                         "a module begins with `HloModule name`");
  }
  const char* start = in_.cursor();
  if (in_.TryConsumeWord("HloModule")) {
    if (!ParseHeader() || !ParseStackFrames()) {
      if (!SkipToNextComputation()) return false;
    }
    frame_numbering_ = StackFrameNumbering(std::move(module_->header().stack_frames), options_.as_dumped);
  } else if (!in_.PeekWord("ENTRY")) {
    // Computations without a header, or a lone instruction.
    const bool named = !in_.Name().empty();
    const char next = in_.Peek();
    in_.set_cursor(start);
    if (!named || (next != '{' && next != '(')) return ParseSingleInstruction();
  }
  while (!in_.AtEnd()) {
    if (!ParseTopComputation() && (sink_->limit_reached() || !SkipToNextComputation())) return false;
  }
  return true;
}

// Skips to the next line that begins a computation: in column 1, with ENTRY or a name, and `{` at its end.
bool ModuleParser::SkipToNextComputation() {
  frames_.clear();
  operands_.clear();
  attrs_.clear();
  computation_list_.clear();
  for (;;) {
    const char* p = in_.cursor();
    while (p < in_.end() && *p != '\n') ++p;
    if (p >= in_.end()) {
      in_.set_cursor(in_.end());
      return false;
    }
    in_.set_cursor(p + 1);
    if (p[1] != '%' && !char_class::Is(p[1], char_class::kNameStart)) continue;
    const char* end = p + 1;
    while (end < in_.end() && *end != '\n') ++end;
    while (end > p + 1 && char_class::Is(end[-1], char_class::kWhitespace)) --end;
    if (end[-1] == '{') return true;
  }
}

namespace {

// Returns true if the last error is that of the last word of the text, unless that closes something, or the error says
// already what is missing.
bool IsCutOff(const DiagnosticSink& sink, std::string_view text) {
  if (sink.diagnostics().empty() || sink.limit_reached()) return false;
  while (!text.empty() && char_class::Is(text.back(), char_class::kWhitespace)) text.remove_suffix(1);
  if (text.ends_with('}')) return false;
  const Diagnostic& last = sink.diagnostics().back();
  if (last.range.offset == SourceRange::kNoOffset || last.message.find("no closing") != std::string::npos) return false;
  return size_t{last.range.offset} + last.range.size >= text.size();
}

}  // namespace

bool ModuleParser::ParseTopComputation() {
  const uint32_t at = in_.Offset();
  const bool is_entry = in_.TryConsumeWord("ENTRY");
  in_.SkipWhitespace();
  const uint32_t name_offset = in_.Here();
  std::string_view name;
  if (!in_.ExpectName(&name, "a computation")) return false;
  const SourceRange name_range{name_offset, in_.Here() - name_offset};
  Shape declared;
  SourceRange declared_range;
  if (in_.Peek() == '(') {
    // (name: shape, ...) -> shape
    in_.TryConsume('(');
    if (!in_.TryConsume(')')) {
      do {
        std::string_view parameter;
        Shape shape;
        // XLA parses the colon as part of the name, so it may be missing.
        if (!in_.ExpectName(&parameter, "a parameter name")) return false;
        in_.TryConsume(':');
        if (!shapes_.Parse(&shape)) return false;
      } while (in_.TryConsume(','));
      if (!in_.Expect(')', "after the parameters of a computation")) return false;
    }
    if (!in_.TryConsume("->")) {
      return in_.ErrorHere(DiagnosticKind::kUnexpectedToken,
                           StrCat("expected `->` and a result shape, found ", in_.DescribeNext()));
    }
    declared_range.offset = in_.Offset();
    if (!shapes_.Parse(&declared)) return false;
    declared_range.size = in_.Here() - declared_range.offset;
  }
  if (!in_.Expect('{', "before the instructions of a computation")) return false;
  const StringId string = InternView(name);
  Frame& body = frames_.emplace_back();
  body.kind = Frame::kBody;
  body.shadowed_begin = static_cast<uint32_t>(names_.shadowed());
  const ComputationId id = module_->AddComputation(string);
  body.computation = id;
  module_->SetSource(id, name_offset);
  if (!RunFrames()) {
    const char* const text = source_->text().data();
    if (IsCutOff(*sink_, {text, static_cast<size_t>(in_.end() - text)})) {
      Error(DiagnosticKind::kUnexpectedToken, name_range,
            StrCat("the text ends in the middle of computation `", name, "`"), "it was cut off: dump or copy it again");
    }
    return false;
  }
  const Shape root = module_->computation(id).root().shape();
  const bool poisoned = (module_->computation(id).root().record().flags & kErrorPlaceholder) != 0;
  if (declared.valid() && !CompatibleIgnoringDynamism(declared, root) && !poisoned) {
    Error(DiagnosticKind::kShapeMismatch, declared_range,
          StrCat("the result of computation `", name, "` is declared as ", ToString(declared, false),
                 ", but its root `", module_->computation(id).root().name(), "` is ", ToString(root, false)));
  }
  if (in_.TryConsume(',')) {
    const SourceRange range = in_.Next();
    if (!in_.TryConsumeWord("execution_thread")) {
      return Error(DiagnosticKind::kUnknownAttribute, range,
                   StrCat("unknown computation attribute ", in_.DescribeNext()), "expected `execution_thread`");
    }
    StringId thread;
    if (!in_.Expect('=', "after execution_thread") || !attribute_parser_.ParseString(&thread)) return false;
    if (context_->str(thread) != "main") module_->SetExecutionThread(id, thread);
  }
  if (is_entry) {
    if (entry_.valid())
      return Error(DiagnosticKind::kDuplicateEntry, {at, 5}, "multiple ENTRY computations in the module");
    entry_ = id;
  }
  if (string.value >= computation_of_name_.size()) computation_of_name_.resize(context_->strings.size() * 2);
  if (computation_of_name_[string.value].valid()) {
    return Error(DiagnosticKind::kDuplicateName, name_range, StrCat("redefinition of computation `", name, "`"));
  }
  computation_of_name_[string.value] = id;
  return true;
}

// Parses `%name = shape opcode(shape %a, shape %b), attributes`: operands become parameters.
bool ModuleParser::ParseSingleInstruction() {
  single_instruction_ = true;
  in_.TryConsumeWord("ROOT");
  in_.SkipWhitespace();
  const uint32_t name_offset = in_.Here();
  std::string_view name;
  if (!in_.ExpectName(&name, "`HloModule`, a computation or an instruction")) return false;
  const uint32_t name_size = in_.Here() - name_offset;
  if (in_.Peek() != '=') {
    return Error(DiagnosticKind::kUnexpectedToken, {name_offset, name_size},
                 StrCat("this is not HLO: expected `HloModule`, a computation or an instruction, found `", name, "`"),
                 "a module begins with `HloModule name`, an instruction with `name = shape opcode(`");
  }
  in_.TryConsume('=');
  const StringId underscore = context_->strings.Intern("_");
  const ComputationId computation = module_->AddComputation(underscore);
  PushInstruction(computation);
  Frame& f = frames_.back();
  f.name = InternView(name);
  f.name_offset = name_offset;
  f.name_size = name_size;
  if (!RunFrames()) return false;
  if (!in_.AtEnd()) {
    return in_.ErrorHere(DiagnosticKind::kUnexpectedToken,
                         StrCat("expected the end of the text after a single instruction, found ", in_.DescribeNext()));
  }
  module_->SetRoot(computation, module_->record(computation).last);
  finished_.insert(finished_.begin(), computation);  // it is named first
  module_->header().name = underscore;
  module_->header().is_scheduled = true;
  entry_ = computation;
  return true;
}

void ModuleParser::CheckSoundShapes() {
  const auto is_erroneous = [](Instruction i) { return (i.record().flags & kErrorPlaceholder) != 0; };
  std::vector<uint8_t> sound(module_->computation_id_bound(), 0);
  for (ComputationId id : finished_) {
    const Computation c = module_->computation(id);
    int64_t parameters = 0;
    bool good = c.root().valid() && deferred_parameters_.find(id.value) == deferred_parameters_.end();
    for (Instruction i : c.instructions()) {
      good = good && !is_erroneous(i);
      parameters += i.opcode() == Opcode::kParameter;
    }
    sound[id.value] = good && parameters == c.parameter_count();
  }
  std::vector<Shape> operands;
  for (ComputationId id : finished_) {
    if (deferred_parameters_.find(id.value) != deferred_parameters_.end()) continue;
    for (Instruction i : module_->computation(id).instructions()) {
      if (sink_->limit_reached()) return;
      bool good = !is_erroneous(i) && i.record().source_offset != InstructionRecord::kNoSourceOffset;
      for (Instruction operand : i.operands()) good = good && !is_erroneous(operand);
      i.ForEachCallee([&](Computation callee) { good = good && sound[callee.id().value] != 0; });
      if (!good) continue;
      const absl::Status status = CheckShape(RequestFor(i, &operands));
      if (status.ok()) continue;
      const bool call = HasTrait(i.opcode(), kControlFlow);
      Error(call ? DiagnosticKind::kCallSignature : DiagnosticKind::kInference,
            {i.record().source_offset, static_cast<uint32_t>(i.name().size())},
            StrCat("`", i.name(), "`: ", std::string(status.message())));
    }
  }
}

bool ModuleParser::FinishModule() {
  if (finished_.empty()) {
    return in_.ErrorHere(DiagnosticKind::kUnexpectedToken, "expected at least one computation in the module");
  }
  if (!entry_.valid()) {
    // Without ENTRY the last computation is the entry.
    entry_ = finished_.back();
  }
  module_->SetEntry(entry_);
  module_->SetComputationOrder(finished_);
  const Computation entry = module_->entry();
  ModuleHeader& h = module_->header();
  h.stack_frames = frame_numbering_.Take();
  if (!h.name.valid()) h.name = context_->strings.Intern(StrCat("module_", entry.name()));
  if (!h.entry_layout) {
    EntryLayout layout;
    for (int64_t i = 0; i < entry.parameter_count(); ++i) layout.parameters.push_back(entry.parameter(i).shape());
    layout.result = entry.root().shape();
    if (single_instruction_) {
      // XLA assigns default layouts to the module of a lone instruction.
      for (Shape& s : layout.parameters) s = context_->shapes.WithDefaultLayouts(s);
      layout.result = context_->shapes.WithDefaultLayouts(layout.result);
    }
    h.entry_layout = std::move(layout);
  }
  AppendDeferredOperands();
  if (duplicate_names_ || names_.may_collide()) UniquifyNames();
  module_->ShrinkToFit();
  return true;
}

void ModuleParser::UniquifyNames() {
  NameUniquer computations(&context_->strings), instructions(&context_->strings);
  for (ComputationId c : finished_) {
    module_->SetName(c, computations.GetUniqueName(module_->record(c).name));
    for (InstructionId i = module_->record(c).first; i.valid(); i = module_->record(i).next) {
      if (!derived_names_.contains(i.value)) module_->SetName(i, instructions.GetUniqueName(module_->record(i).name));
    }
  }
  if (derived_names_.empty()) return;
  // Names of the text have precedence over derived ones.
  for (ComputationId c : finished_) {
    for (InstructionId i = module_->record(c).first; i.valid(); i = module_->record(i).next) {
      if (derived_names_.contains(i.value)) module_->SetName(i, instructions.GetUniqueName(module_->record(i).name));
    }
  }
}

}  // namespace hlokit
