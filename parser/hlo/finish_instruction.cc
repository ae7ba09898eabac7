// SPDX-License-Identifier: Apache-2.0
// Completion of an instruction: adds and canonicalizes attributes, infers an omitted result shape, and creates the
// record.
#include <algorithm>
#include <array>

#include "ir/core/str_cat.h"
#include "ir/graph/async.h"
#include "ir/graph/complete_attributes.h"
#include "ir/inference/shape_inference.h"
#include "ir/sharding/sharding.h"
#include "parser/hlo/module_parser.h"

namespace hlokit {
namespace {

// Checks that the attributes of an opcode need, so that most instructions skip the rare ones.
struct AttrDuties {
  bool drop_read_only = false;  // some are parsed but not stored
  bool fit_to_shape = false;    // attributes depend on the result shape, even if there are none
};

const AttrDuties& DutiesOf(Opcode opcode) {
  static const std::array<AttrDuties, kOpcodeCount + 1> table = [] {
    std::array<AttrDuties, kOpcodeCount + 1> duties;
    for (Opcode opcode : {Opcode::kMap, Opcode::kAsyncStart, Opcode::kAsyncUpdate}) {
      duties[static_cast<size_t>(opcode)].fit_to_shape = true;
    }
    for (size_t i = 0; i <= kOpcodeCount; ++i) {
      for (const AttrSpec& spec : InfoOf(static_cast<Opcode>(i)).attributes) {
        duties[i].drop_read_only |= spec.presence == AttrSpec::kLegacy;
      }
    }
    return duties;
  }();
  return table[static_cast<size_t>(opcode)];
}

}  // namespace

AttrValue* ModuleParser::FindAttr(const Frame& f, Attr attr) {
  for (size_t i = f.attrs_begin; i < attrs_.size(); ++i) {
    if (attrs_[i].attr == attr) return &attrs_[i];
  }
  return nullptr;
}

void ModuleParser::RemoveAttr(const Frame& f, Attr attr) {
  attrs_.erase(
      std::remove_if(attrs_.begin() + f.attrs_begin, attrs_.end(), [&](const AttrValue& v) { return v.attr == attr; }),
      attrs_.end());
}

bool ModuleParser::CheckOperandCount(const Frame& f) {
  const OpcodeInfo& info = InfoOf(f.opcode);
  const auto count = static_cast<int64_t>(operands_.size() - f.operands_begin);
  if (count >= info.min_operands && (info.max_operands == kVariadic || count <= info.max_operands)) return true;
  const bool exact = info.min_operands == info.max_operands;
  return Error(DiagnosticKind::kOperandCount, {f.opcode_offset, f.opcode_size},
               StrCat("expected ", exact ? "" : "at least ", static_cast<int>(info.min_operands),
                      info.min_operands == 1 ? " operand" : " operands", " for ", info.text, ", found ", count));
}

// Checks required attributes, adds defaulted ones, and removes those with default values.
bool ModuleParser::CompleteAttributes(const Frame& f, Opcode opcode) {
  const std::optional<Attr> missing = hlokit::CompleteAttributes(*module_, opcode, f.attrs_begin, &attrs_);
  if (!missing) return true;
  return Error(DiagnosticKind::kMissingAttribute, {f.opcode_offset, f.opcode_size},
               StrCat("missing attribute `", ToString(*missing), "` for ", ToString(opcode)));
}

// Checks and canonicalizes attributes of single opcodes, beyond the tables.
bool ModuleParser::NormalizeAttributes(Frame& f) {
  const SourceRange range{f.opcode_offset, f.opcode_size};
  const auto operand_shape = [&](size_t i) { return module_->instruction(operands_[f.operands_begin + i]).shape(); };
  const size_t operand_count = operands_.size() - f.operands_begin;
  const Opcode opcode = f.sugar && f.opcode == Opcode::kAsyncStart ? f.wrapped : f.opcode;
  if (opcode == Opcode::kCompare && operand_count > 0) {
    const AttrValue* type = FindAttr(f, Attr::kCompareType);
    const ElementType element = operand_shape(0).element_type();
    if (type != nullptr && IsArrayType(element) && type->payload == static_cast<uint32_t>(DefaultComparison(element))) {
      RemoveAttr(f, Attr::kCompareType);
    }
  } else if (opcode == Opcode::kBroadcast && operand_count > 0) {
    if (FindAttr(f, Attr::kDimensions) == nullptr) {
      if (!operand_shape(0).IsScalar()) {
        return Error(DiagnosticKind::kMissingAttribute, range,
                     "missing attribute `dimensions` for broadcast of an array");
      }
      attrs_.push_back({Attr::kDimensions, 0});
    }
  } else if (opcode == Opcode::kCustomCall) {
    if (AttrValue* to_apply = FindAttr(f, Attr::kToApply)) {
      if (FindAttr(f, Attr::kCalledComputations) != nullptr) {
        return Error(DiagnosticKind::kBadAttribute, range,
                     "a custom-call cannot have both `to_apply` and `called_computations`");
      }
      *to_apply = {Attr::kCalledComputations, module_->ListPayload({int64_t{to_apply->payload}})};
    }
    if (const AttrValue* version = FindAttr(f, Attr::kApiVersion)) {
      const auto value = static_cast<CustomCallApiVersion>(version->payload);
      if (value == CustomCallApiVersion::kUnspecified) {
        return Error(DiagnosticKind::kBadAttribute, range, "expected an API version, found API_VERSION_UNSPECIFIED");
      }
      if (value == CustomCallApiVersion::kOriginal) RemoveAttr(f, Attr::kApiVersion);
    }
    if (const AttrValue* constraints = FindAttr(f, Attr::kOperandLayoutConstraints)) {
      const absl::Span<const int64_t> shapes = context_->list(ListId(constraints->payload));
      if (shapes.size() != operand_count) {
        return Error(DiagnosticKind::kOperandCount, range,
                     StrCat("expected ", operand_count, " operand layout constraints, found ", shapes.size()));
      }
      for (size_t i = 0; i < shapes.size(); ++i) {
        const Shape constraint = context_->shape(ShapeId(static_cast<uint32_t>(shapes[i])));
        if (!Compatible(constraint, operand_shape(i)) && !f.has_error) {
          return Error(DiagnosticKind::kShapeMismatch, range,
                       StrCat("layout constraint ", ToString(constraint), " of operand ", i,
                              " is incompatible with its shape ", ToString(operand_shape(i))));
        }
      }
    }
  } else if (opcode == Opcode::kConditional) {
    if (operand_count == 0)
      return Error(DiagnosticKind::kOperandCount, range, "missing branch index of the conditional");
    const Shape index = operand_shape(0);
    if (!index.IsScalar() ||
        (index.element_type() != ElementType::kPred && index.element_type() != ElementType::kS32)) {
      return f.has_error ||
             Error(DiagnosticKind::kShapeMismatch, range,
                   StrCat("expected operand 0 of a conditional to be pred[] or s32[], found ", ToString(index)));
    }
    const bool by_pred = index.element_type() == ElementType::kPred;
    const bool has_list = FindAttr(f, Attr::kBranchComputations) != nullptr;
    const bool has_pair =
        FindAttr(f, Attr::kTrueComputation) != nullptr && FindAttr(f, Attr::kFalseComputation) != nullptr;
    if (by_pred ? !has_pair || has_list : !has_list || has_pair) {
      return Error(DiagnosticKind::kMissingAttribute, range,
                   by_pred ? "a conditional on a pred requires `true_computation` and `false_computation`"
                           : "a conditional on an s32 requires `branch_computations`");
    }
    const size_t branches =
        by_pred ? 2 : context_->list(ListId(FindAttr(f, Attr::kBranchComputations)->payload)).size();
    if (branches == 0)
      return Error(DiagnosticKind::kBadAttribute, range, "expected at least one branch in a conditional");
    if (operand_count != branches + 1) {
      return Error(DiagnosticKind::kOperandCount, range,
                   StrCat("expected ", branches + 1, " operands for a conditional with ", branches, " branches, found ",
                          operand_count));
    }
  } else if (opcode == Opcode::kOutfeed && operand_count > 0) {
    if (FindAttr(f, Attr::kOutfeedShape) == nullptr) {
      attrs_.push_back({Attr::kOutfeedShape, operand_shape(0).id().value});
    }
    f.shape = context_->shapes.Token();  // ignores the text
  } else if (opcode == Opcode::kGetTupleElement && operand_count == 1) {
    // As in XLA, a get-tuple-element has the original value of the tuple's operand.
    const Instruction tuple = module_->instruction(operands_[f.operands_begin]);
    const AttrValue* index = FindAttr(f, Attr::kIndex);
    if (tuple.opcode() == Opcode::kTuple && index != nullptr && FindAttr(f, Attr::kOrigin) == nullptr) {
      const int64_t i = module_->DecodeInt64(index->payload);
      if (i >= 0 && i < tuple.operand_count()) {
        if (const std::optional<uint32_t> origin = tuple.operand(i).payload(Attr::kOrigin)) {
          attrs_.push_back({Attr::kOrigin, *origin});
        }
      }
    }
  }
  if (HasTrait(opcode, kCollective) && FindAttrSpec(opcode, Attr::kToApply) != nullptr) {
    const AttrValue* global = FindAttr(f, Attr::kUseGlobalDeviceIds);
    if (global != nullptr && global->payload != 0 && FindAttr(f, Attr::kChannelId) == nullptr) {
      return Error(DiagnosticKind::kBadAttribute, range,
                   "missing attribute `channel_id`, which `use_global_device_ids=true` requires");
    }
  }
  return NormalizeShape(f, opcode);
}

// XLA's constructors of these instructions compute the shape, using only the free part of the text's shape.
bool ModuleParser::NormalizeShape(Frame& f, Opcode opcode) {
  const SourceRange range{f.opcode_offset, f.opcode_size};
  if (f.sugar || !f.shape.valid() || f.has_error) return true;
  ShapeTable& shapes = context_->shapes;
  const bool has_operand = operands_.size() > f.operands_begin;
  const Shape operand = has_operand ? module_->instruction(operands_[f.operands_begin]).shape() : Shape();
  if (opcode == Opcode::kSend && has_operand) {
    f.shape = shapes.Tuple({operand, shapes.Scalar(ElementType::kU32), shapes.Token()});
  } else if (opcode == Opcode::kSendDone) {
    f.shape = shapes.Token();
  } else if (opcode == Opcode::kRecv || opcode == Opcode::kInfeed) {
    if (!f.shape.IsTuple() || f.shape.tuple_size() == 0) {
      return Error(DiagnosticKind::kBadShape, range,
                   StrCat("expected a tuple shape that begins with the data for ", ToString(opcode), ", found ",
                          ToString(f.shape)));
    }
    f.shape = opcode == Opcode::kRecv
                  ? shapes.Tuple({f.shape.element(0), shapes.Scalar(ElementType::kU32), shapes.Token()})
                  : shapes.Tuple({f.shape.element(0), shapes.Token()});
  } else if (opcode == Opcode::kRecvDone && has_operand && operand.IsTuple() && operand.tuple_size() > 0) {
    f.shape = shapes.Tuple({operand.element(0), shapes.Token()});
  } else if (opcode == Opcode::kDynamicReshape && has_operand && operand.IsArray() && f.shape.IsArray()) {
    if (operand.element_count() != f.shape.element_count()) {
      return Error(DiagnosticKind::kShapeMismatch, range,
                   StrCat("result ", ToString(f.shape), " and operand ", ToString(operand),
                          " must have the same number of elements"));
    }
  } else if (opcode == Opcode::kConstant && f.shape.IsArray() && f.shape.has_layout() &&
             f.shape.layout()->extras != nullptr && f.shape.layout()->extras->element_size_in_bits != 0) {
    // A value is not packed, so its layout has no element size.
    LayoutExtras extras = *f.shape.layout()->extras;
    extras.element_size_in_bits = 0;
    f.shape = shapes.WithLayout(f.shape, shapes.Layout(f.shape.layout()->minor_to_major, extras));
  }
  return true;
}

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

// Adjusts attributes that depend on the result shape, and the opcode where the shape determines it.
bool ModuleParser::AdjustAttributesToShape(Frame& f) {
  if (attrs_.size() == f.attrs_begin && !DutiesOf(f.opcode).fit_to_shape) return true;
  const SourceRange range{f.opcode_offset, f.opcode_size};
  if (f.opcode == Opcode::kMap) {
    // XLA's map always covers all dimensions.
    list_.clear();
    for (int64_t d = 0; d < f.shape.rank(); ++d) list_.push_back(d);
    RemoveAttr(f, Attr::kDimensions);
    attrs_.push_back({Attr::kDimensions, module_->ListPayload(list_)});
  }
  if (AttrValue* sharding = FindAttr(f, Attr::kSharding); sharding != nullptr && f.shape.IsTuple()) {
    sharding->payload = NormalizeForShape(context_.get(), ListId(sharding->payload), f.shape).value;
  }
  if (const AttrValue* replication = FindAttr(f, Attr::kParameterReplication)) {
    const auto given = static_cast<int64_t>(context_->list(ListId(replication->payload)).size());
    if (given != f.shape.leaf_count()) {
      return Error(DiagnosticKind::kBadAttribute, range,
                   StrCat("the parameter has ", f.shape.leaf_count(), " leaf buffers, but parameter_replication has ",
                          given, " elements"));
    }
  }
  if (f.opcode == Opcode::kAsyncStart || f.opcode == Opcode::kAsyncUpdate) {
    if (!f.shape.IsTuple() || f.shape.tuple_size() < 2 || !f.shape.element(0).IsTuple()) {
      return Error(DiagnosticKind::kBadAsync, range,
                   StrCat("expected a shape ((operands), outputs, state...) for ", ToString(f.opcode), ", found ",
                          ToString(f.shape)));
    }
  }
  return true;
}

bool ModuleParser::FinishAsync(Frame& f) {
  const SourceRange range{f.opcode_offset, f.opcode_size};
  if (f.opcode == Opcode::kAsyncStart) {
    const size_t count = operands_.size() - f.operands_begin;
    if (!f.sugar) {
      // The computation runs on the thread of the operation.
      const AttrValue* thread = FindAttr(f, Attr::kAsyncExecutionThread);
      const AttrValue* calls = FindAttr(f, Attr::kCalls);
      if (calls != nullptr) {
        const bool main = thread == nullptr || context_->str(StringId(thread->payload)) == "main";
        SetThread(ComputationId(calls->payload), main ? StringId() : StringId(thread->payload));
      }
      return true;
    }
    // The sugar hides a computation of parameters and one instruction.
    const ComputationId wrapper = module_->AddComputation(context_->strings.Intern("async_wrapped"));
    const AttrValue* thread_attr = FindAttr(f, Attr::kAsyncExecutionThread);
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
  if (const AttrValue* given = FindAttr(f, Attr::kAsyncExecutionThread)) {
    const std::string_view expected = thread.valid() ? context_->str(thread) : "main";
    if (context_->str(StringId(given->payload)) != expected) {
      return Error(DiagnosticKind::kBadAsync, range,
                   StrCat("the operation started by `", start.name(), "` runs on thread `", expected, "`, not `",
                          context_->str(StringId(given->payload)), "`"));
    }
  }
  if (const AttrValue* calls = FindAttr(f, Attr::kCalls)) {
    if (wrapper.valid() && calls->payload != wrapper.id().value) {
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

void ModuleParser::DropLegacyAttributes(const Frame& f) {
  if (!DutiesOf(f.opcode).drop_read_only) return;
  for (Attr dropped : {Attr::kMode, Attr::kToApply, Attr::kAsyncExecutionThread, Attr::kCalls}) {
    const AttrSpec* spec = FindAttrSpec(f.opcode, dropped);
    if (spec != nullptr && spec->presence == AttrSpec::kLegacy) RemoveAttr(f, dropped);
  }
}

ModuleParser::FrameStatus ModuleParser::FinishInstruction(size_t frame) {
  Frame& f = frames_[frame];
  const bool sugar_start = f.sugar && f.opcode == Opcode::kAsyncStart;
  if (!sugar_start && !CheckOperandCount(f)) return FrameStatus::kFailed;
  if (!NormalizeAttributes(f)) return FrameStatus::kFailed;
  if (!CompleteAttributes(f, sugar_start ? f.wrapped : f.opcode)) return FrameStatus::kFailed;
  if (!f.shape.valid()) {
    if (!InferResult(f)) return FrameStatus::kFailed;
    if (f.shape.leaf_count() > kMaxLeaves) {
      Error(DiagnosticKind::kTooLarge, {f.opcode_offset, f.opcode_size}, "the inferred tuple shape is too large");
      return FrameStatus::kFailed;
    }
  }
  if (!AdjustAttributesToShape(f)) return FrameStatus::kFailed;
  if (HasTrait(f.opcode, kGenericAsync) && !FinishAsync(f)) return FrameStatus::kFailed;
  DropLegacyAttributes(f);
  if (module_->instruction_id_bound() >= static_cast<size_t>(options_.max_instructions)) {
    Error(DiagnosticKind::kTooLarge, NameRange(f), "the module has too many instructions");
    frames_.clear();
    return FrameStatus::kFailed;
  }
  if (!f.name.valid()) {
    f.name = AnonymousName(f.opcode);
  } else if (Lookup(f.name, f.computation).valid()) {
    Error(DiagnosticKind::kDuplicateName, NameRange(f),
          StrCat("redefinition of instruction `", context_->str(f.name), "`"));
    return FrameStatus::kFailed;
  }
  const InstructionId id = module_->AddInstruction(f.computation, f.opcode, f.shape, f.name,
                                                   absl::MakeConstSpan(operands_).subspan(f.operands_begin),
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
  const ComputationId computation = f.computation;
  frames_.pop_back();
  Define(name, id, computation);
  if (nested) {
    operands_.push_back(id);
  } else if (!frames_.empty() && is_root) {
    frames_.back().root = id;
  }
  return FrameStatus::kDone;
}

}  // namespace hlokit
