// SPDX-License-Identifier: Apache-2.0
// Completion of an instruction: applies the rules for operands and attributes, infers an omitted result shape, binds
// asynchronous operations, and creates the record.
#include "ir/core/str_cat.h"
#include "ir/graph/async.h"
#include "ir/inference/shape_inference.h"
#include "ir/ops/opcode_set.h"
#include "parser/hlo/module_parser.h"

namespace hlokit {
namespace {

// Returns true if the computations are the same up to names and attributes, instruction by instruction.
bool HaveSameInstructions(Computation a, Computation b) {
  if (a.instruction_count() != b.instruction_count()) return false;
  auto other = b.instructions().begin();
  for (Instruction i : a.instructions()) {
    const Instruction j = *other;
    ++other;
    if (i.opcode() != j.opcode() || i.shape() != j.shape()) return false;
  }
  return true;
}

}  // namespace

bool ModuleParser::InferResult(Frame& f) {
  const SourceRange range{f.opcode_offset, f.opcode_size};
  if (!HasTrait(f.opcode, kInferable)) {
    return Error(DiagnosticKind::kMissingShape, range,
                 StrCat("the result shape of ", ToString(f.opcode), " cannot be inferred and must be specified"));
  }
  if (f.has_error) {
    f.shape = context_->shapes.Token();
    return true;
  }
  std::vector<Shape> shapes;
  for (size_t i = f.operands_begin; i < operands_.size(); ++i) {
    shapes.push_back(module_->instruction(operands_[i]).shape());
  }
  InferenceRequest request;
  request.module = module_.get();
  request.opcode = f.opcode;
  request.operands = shapes;
  request.attrs = absl::MakeConstSpan(attrs_).subspan(f.attrs_begin);
  absl::StatusOr<Shape> inferred = InferShape(request);
  if (!inferred.ok()) {
    return Error(DiagnosticKind::kInference, range,
                 StrCat("cannot infer the result shape: ", std::string(inferred.status().message())));
  }
  f.shape = *inferred;
  return true;
}

bool ModuleParser::FinishAsync(Frame& f) {
  const SourceRange range{f.opcode_offset, f.opcode_size};
  if (f.opcode == Opcode::kAsyncStart) {
    const size_t count = operands_.size() - f.operands_begin;
    if (!f.sugar) {
      // The computation runs on the thread of the operation.
      const AttrValue* thread = AttrsOf(f).Find(Attr::kAsyncExecutionThread);
      const AttrValue* calls = AttrsOf(f).Find(Attr::kCalls);
      if (calls != nullptr) {
        const bool main = thread == nullptr || context_->str(StringId(thread->payload)) == "main";
        SetThread(ComputationId(calls->payload), main ? StringId() : StringId(thread->payload));
      }
      return true;
    }
    // The sugar hides a computation of parameters and one instruction.
    const ComputationId wrapper = module_->AddComputation(context_->strings.Intern("async_wrapped"));
    const AttrValue* thread_attr = AttrsOf(f).Find(Attr::kAsyncExecutionThread);
    const StringId thread = thread_attr != nullptr ? StringId(thread_attr->payload) : StringId();
    std::vector<InstructionId> parameters;
    const StringId parameter_name = context_->strings.Intern("async_param");
    for (size_t i = 0; i < count; ++i) {
      const Shape shape = module_->instruction(operands_[f.operands_begin + i]).shape();
      parameters.push_back(module_->AddInstruction(wrapper, Opcode::kParameter, shape, parameter_name, {}, {},
                                                   static_cast<uint32_t>(i)));
    }
    wrapped_attrs_.clear();
    size_t kept = f.attrs_begin;
    for (size_t i = f.attrs_begin; i < attrs_.size(); ++i) {
      const AttrValue value = attrs_[i];
      const bool own = !IsCommon(value.attr) && FindAttrSpec(f.wrapped, value.attr) != nullptr;
      const bool shared = value.attr == Attr::kFrontendAttributes || value.attr == Attr::kBackendConfig;
      if (own || shared) wrapped_attrs_.push_back(value);
      if (!own) attrs_[kept++] = value;
    }
    attrs_.resize(kept);
    const StringId root_name = context_->strings.Intern(ToString(f.wrapped));
    const InstructionId root =
        module_->AddInstruction(wrapper, f.wrapped, f.shape.element(1), root_name, parameters, wrapped_attrs_);
    module_->SetMetadata(root, f.metadata);
    module_->SetSource(root, f.opcode_offset);
    module_->SetRoot(wrapper, root);
    SetThread(wrapper, thread);
    finished_.push_back(wrapper);
    deferred_parameters_[wrapper.value];
    duplicate_names_ = true;
    attrs_.push_back({Attr::kCalls, wrapper.value});
    return true;
  }
  // Updates and dones belong to the async chain of their first operand.
  if (operands_.size() == f.operands_begin) {
    return Error(DiagnosticKind::kBadAsync, range,
                 StrCat("expected the operand of ", ToString(f.opcode), " to be the previous async operation"));
  }
  const Instruction previous = module_->instruction(operands_[f.operands_begin]);
  if (previous.opcode() == Opcode::kAsyncDone && !f.has_error) {
    return Error(
        DiagnosticKind::kBadAsync, range,
        StrCat(ToString(f.opcode), " cannot continue `", previous.name(), "`, which has an async-done already"));
  }
  const Instruction start = async_starts_.Find(previous);
  if (!start.valid()) {
    return true;  // may be in another iteration of a loop: the verifier checks the whole module
  }
  const Computation wrapper = start.computation_attr(Attr::kCalls);
  if (f.sugar && wrapper.valid() && wrapper.root().opcode() != f.wrapped) {
    return Error(DiagnosticKind::kBadAsync, range,
                 StrCat("the operation started by `", start.name(), "` is ", wrapper.root().opcode_text(), ", not ",
                        ToString(f.wrapped)));
  }
  const StringId thread(start.payload(Attr::kAsyncExecutionThread).value_or(StringId::kNone));
  if (const AttrValue* given = AttrsOf(f).Find(Attr::kAsyncExecutionThread)) {
    const std::string_view expected = thread.valid() ? context_->str(thread) : "main";
    if (context_->str(StringId(given->payload)) != expected) {
      return Error(DiagnosticKind::kBadAsync, range,
                   StrCat("the operation started by `", start.name(), "` runs on thread `", expected, "`, not `",
                          context_->str(StringId(given->payload)), "`"));
    }
  }
  if (const AttrValue* calls = AttrsOf(f).Find(Attr::kCalls)) {
    // Around a loop there are several starts, each with a computation of its own.
    const Computation called = module_->computation(ComputationId(calls->payload));
    const bool direct = OpcodeSet{Opcode::kAsyncStart, Opcode::kAsyncUpdate}.Contains(previous.opcode());
    if (wrapper.valid() && called.id() != wrapper.id() && (direct || !HaveSameInstructions(called, wrapper))) {
      return Error(DiagnosticKind::kBadAsync, range,
                   StrCat("the operation started by `", start.name(), "` calls `", wrapper.name(), "`"));
    }
  }
  return BindDeferredOperands(f, start.id());
}

// Later updates bind operands and outputs that a start leaves open, and extend the computation that the sugar hides.
bool ModuleParser::BindDeferredOperands(const Frame& f, InstructionId start_id) {
  const Computation wrapper = module_->instruction(start_id).computation_attr(Attr::kCalls);
  if (!wrapper.valid()) return true;
  const auto late = deferred_parameters_.find(wrapper.id().value);
  if (late == deferred_parameters_.end()) return true;
  const InstructionId root = wrapper.root().id();
  for (size_t i = f.operands_begin + 1; i < operands_.size(); ++i) {
    const auto number = static_cast<uint32_t>(wrapper.parameter_count());
    const InstructionId parameter =
        module_->AddInstruction(wrapper.id(), Opcode::kParameter, module_->instruction(operands_[i]).shape(),
                                context_->strings.Intern("async_param"), {}, {}, number);
    module_->MoveBefore(parameter, root);
    late->second.push_back(parameter);
  }
  const Shape now = module_->instruction(root).shape();
  const Shape bound = f.opcode == Opcode::kAsyncUpdate ? f.shape.element(1) : f.shape;
  if (now.IsTuple() && bound.valid() && bound != now && (!bound.IsTuple() || bound.tuple_size() > now.tuple_size()) &&
      now.tuple_size() == 0) {
    module_->SetShape(root, bound);
  }
  return true;
}

// Extends each computation once, after all deferred operands are known.
void ModuleParser::AppendDeferredOperands() {
  for (const auto& [computation, parameters] : deferred_parameters_) {
    if (parameters.empty()) continue;
    const Instruction root = module_->computation(ComputationId(computation)).root();
    std::vector<InstructionId> operands;
    for (Instruction operand : root.operands()) operands.push_back(operand.id());
    operands.insert(operands.end(), parameters.begin(), parameters.end());
    module_->SetOperands(root.id(), operands);
  }
}

// Sets the thread of a computation run by an asynchronous operation, and of its callees, except those that start
// asynchronous operations in turn.
void ModuleParser::SetThread(ComputationId computation, StringId thread) {
  std::vector<ComputationId> open = {computation};
  std::vector<uint8_t> seen(module_->computation_id_bound(), 0);
  while (!open.empty()) {
    const ComputationId id = open.back();
    open.pop_back();
    if (seen[id.value]++ != 0) continue;
    seen[id.value] = 1;
    module_->SetExecutionThread(id, thread);
    for (Instruction i : module_->computation(id).instructions()) {
      if (i.opcode() == Opcode::kAsyncStart) continue;
      i.ForEachCallee([&](Computation callee) { open.push_back(callee.id()); });
    }
  }
}

// As in XLA, attributes of an asynchronous operation also apply to the instruction that it wraps.
void ModuleParser::CopyToWrapped(InstructionId async) {
  const Instruction instruction = module_->instruction(async);
  const Instruction start = async_starts_.Find(instruction);
  if (!start.valid()) return;
  const Computation wrapper = start.computation_attr(Attr::kCalls);
  if (!wrapper.valid() || !wrapper.record().root.valid()) return;
  const InstructionId root = wrapper.record().root;
  for (Attr attr : {Attr::kOrigin, Attr::kFrontendAttributes, Attr::kStatistics, Attr::kBackendConfig}) {
    if (const std::optional<uint32_t> payload = instruction.payload(attr)) module_->SetAttr(root, attr, *payload);
  }
  if (instruction.metadata_id().valid()) module_->SetMetadata(root, instruction.metadata_id());
}

ModuleParser::FrameStatus ModuleParser::FinishInstruction(size_t frame) {
  Frame& f = frames_[frame];
  const bool sugar_start = f.sugar && f.opcode == Opcode::kAsyncStart;
  if (!sugar_start && !rules_.CheckOperandCount(f, OperandsOf(f))) return FrameStatus::kFailed;
  AttrTail attrs = AttrsOf(f);
  if (!rules_.NormalizeAttributes(f, OperandsOf(f), &attrs)) return FrameStatus::kFailed;
  if (!rules_.CompleteAttributes(f, sugar_start ? f.wrapped : f.opcode, &attrs)) return FrameStatus::kFailed;
  if (!f.shape.valid()) {
    if (!InferResult(f)) return FrameStatus::kFailed;
    if (f.shape.leaf_count() > kMaxLeaves) {
      Error(DiagnosticKind::kTooLarge, {f.opcode_offset, f.opcode_size}, "the inferred tuple shape is too large");
      return FrameStatus::kFailed;
    }
  }
  if (!rules_.AdjustAttributesToShape(f, &attrs)) return FrameStatus::kFailed;
  if (HasTrait(f.opcode, kGenericAsync) && !FinishAsync(f)) return FrameStatus::kFailed;
  rules_.DropLegacyAttributes(f, &attrs);
  if (module_->instruction_id_bound() >= static_cast<size_t>(options_.max_instructions)) {
    Error(DiagnosticKind::kTooLarge, NameRange(f),
          StrCat("the module has more instructions than the limit of ", options_.max_instructions,
                 " (--max-instructions)"));
    frames_.clear();
    return FrameStatus::kFailed;
  }
  if (!f.name.valid()) {
    f.name = names_.Anonymous(f.opcode);
  } else if (names_.Find(f.name, f.computation).valid()) {
    Error(DiagnosticKind::kDuplicateName, NameRange(f),
          StrCat("redefinition of instruction `", context_->str(f.name), "`"));
    return FrameStatus::kFailed;
  }
  const InstructionId id = module_->AddInstruction(f.computation, f.opcode, f.shape, f.name, OperandsOf(f),
                                                   absl::MakeConstSpan(attrs_).subspan(f.attrs_begin), f.payload);
  module_->SetMetadata(id, f.metadata);
  module_->SetSource(id, f.name_offset);
  if (f.nested) module_->SetFlag(id, kGeneratedName);
  if (HasTrait(f.opcode, kGenericAsync)) CopyToWrapped(id);
  if (f.has_error) module_->SetFlag(id, kErrorPlaceholder);
  operands_.resize(f.operands_begin);
  attrs_.resize(f.attrs_begin);
  const bool nested = f.nested;
  const bool is_root = f.is_root;
  const StringId name = f.name;
  frames_.pop_back();
  names_.Define(name, id, frames_.size() > 1);
  if (nested) {
    operands_.push_back(id);
  } else if (!frames_.empty() && is_root) {
    frames_.back().root = id;
  }
  return FrameStatus::kDone;
}

}  // namespace hlokit
