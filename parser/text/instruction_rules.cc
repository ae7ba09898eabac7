// SPDX-License-Identifier: Apache-2.0
#include "parser/text/instruction_rules.h"

#include <algorithm>
#include <array>
#include <optional>

#include "ir/core/str_cat.h"
#include "ir/graph/complete_attributes.h"
#include "ir/ops/opcode_set.h"
#include "ir/ops/opcode_table.h"
#include "ir/sharding/sharding.h"

namespace hlokit {
namespace {

// Checks that the attributes of an opcode need, so that most instructions skip the rare ones.
struct AttrDuties {
  bool drop_legacy = false;   // some are parsed but not stored
  bool fit_to_shape = false;  // attributes depend on the result shape, even if there are none
};

const AttrDuties& DutiesOf(Opcode opcode) {
  static const std::array<AttrDuties, kOpcodeCount + 1> table = [] {
    std::array<AttrDuties, kOpcodeCount + 1> duties;
    for (Opcode opcode : {Opcode::kAsyncStart, Opcode::kAsyncUpdate}) {
      duties[static_cast<size_t>(opcode)].fit_to_shape = true;
    }
    for (size_t i = 0; i <= kOpcodeCount; ++i) {
      for (const AttrSpec& spec : InfoOf(static_cast<Opcode>(i)).attributes) {
        duties[i].drop_legacy |= spec.presence == AttrSpec::kLegacy;
      }
    }
    return duties;
  }();
  return table[static_cast<size_t>(opcode)];
}

}  // namespace

AttrValue* AttrTail::Find(Attr attr) {
  for (size_t i = begin_; i < all_.size(); ++i) {
    if (all_[i].attr == attr) return &all_[i];
  }
  return nullptr;
}

void AttrTail::Remove(Attr attr) {
  all_.erase(std::remove_if(all_.begin() + static_cast<ptrdiff_t>(begin_), all_.end(),
                            [&](const AttrValue& v) { return v.attr == attr; }),
             all_.end());
}

bool InstructionRules::CheckOperandCount(const InstructionDraft& draft, Operands operands) {
  const OpcodeInfo& info = InfoOf(draft.opcode);
  const auto count = static_cast<int64_t>(operands.size());
  if (count >= info.min_operands && (info.max_operands == kVariadic || count <= info.max_operands)) return true;
  const bool exact = info.min_operands == info.max_operands;
  return Error(DiagnosticKind::kOperandCount, {draft.opcode_offset, draft.opcode_size},
               StrCat("expected ", exact ? "" : "at least ", Counted(static_cast<int>(info.min_operands), "operand"),
                      " for ", info.text, ", found ", count));
}

bool InstructionRules::CompleteAttributes(const InstructionDraft& draft, Opcode opcode, AttrTail* attrs) {
  const std::optional<Attr> missing = hlokit::CompleteAttributes(*module_, opcode, attrs->begin(), attrs->all());
  if (!missing) return true;
  return Error(DiagnosticKind::kMissingAttribute, {draft.opcode_offset, draft.opcode_size},
               StrCat("missing attribute `", ToString(*missing), "` for ", ToString(opcode)));
}

std::optional<bool> InstructionRules::CheckBroadcast(InstructionDraft& draft, Operands operands, AttrTail* attrs) {
  if (operands.empty() || attrs->Find(Attr::kDimensions) != nullptr) return std::nullopt;
  if (module_->instruction(operands[0]).shape().IsScalar()) return std::nullopt;
  return Error(DiagnosticKind::kMissingAttribute, {draft.opcode_offset, draft.opcode_size},
               "missing attribute `dimensions` for broadcast of an array");
}

std::optional<bool> InstructionRules::CheckCustomCall(InstructionDraft& draft, Operands operands, AttrTail* attrs) {
  const SourceRange range{draft.opcode_offset, draft.opcode_size};
  const auto operand_shape = [&](size_t i) { return module_->instruction(operands[i]).shape(); };
  const size_t operand_count = operands.size();
  if (attrs->Find(Attr::kToApply) != nullptr && attrs->Find(Attr::kCalledComputations) != nullptr) {
    return Error(DiagnosticKind::kBadAttribute, range,
                 "a custom-call cannot have both `to_apply` and `called_computations`");
  }
  const AttrValue* version = attrs->Find(Attr::kApiVersion);
  if (version != nullptr && version->payload == static_cast<uint32_t>(CustomCallApiVersion::kUnspecified)) {
    return Error(DiagnosticKind::kBadAttribute, range, "expected an API version, found API_VERSION_UNSPECIFIED");
  }
  if (const AttrValue* constraints = attrs->Find(Attr::kOperandLayoutConstraints)) {
    const absl::Span<const int64_t> shapes = context().list(ListId(constraints->payload));
    if (shapes.size() != operand_count) {
      return Error(DiagnosticKind::kOperandCount, range,
                   StrCat("expected ", operand_count, " operand layout constraints, found ", shapes.size()));
    }
    for (size_t i = 0; i < shapes.size(); ++i) {
      const Shape constraint = context().shape(ShapeId(static_cast<uint32_t>(shapes[i])));
      if (!Compatible(constraint, operand_shape(i)) && !draft.has_error) {
        return Error(DiagnosticKind::kShapeMismatch, range,
                     StrCat("layout constraint ", ToString(constraint), " of operand ", i,
                            " is incompatible with its shape ", ToString(operand_shape(i))));
      }
    }
  }
  return std::nullopt;
}

std::optional<bool> InstructionRules::CheckConditional(InstructionDraft& draft, Operands operands, AttrTail* attrs) {
  const SourceRange range{draft.opcode_offset, draft.opcode_size};
  const size_t operand_count = operands.size();
  if (operand_count == 0) return Error(DiagnosticKind::kOperandCount, range, "missing branch index of the conditional");
  const Shape index = module_->instruction(operands[0]).shape();
  if (!index.IsScalar() || (index.element_type() != ElementType::kPred && index.element_type() != ElementType::kS32)) {
    return draft.has_error ||
           Error(DiagnosticKind::kShapeMismatch, range,
                 StrCat("expected operand 0 of a conditional to be pred[] or s32[], found ", ToString(index)));
  }
  const bool by_pred = index.element_type() == ElementType::kPred;
  const bool has_list = attrs->Find(Attr::kBranchComputations) != nullptr;
  const bool has_pair =
      attrs->Find(Attr::kTrueComputation) != nullptr && attrs->Find(Attr::kFalseComputation) != nullptr;
  if (by_pred ? !has_pair || has_list : !has_list || has_pair) {
    return Error(DiagnosticKind::kMissingAttribute, range,
                 by_pred ? "a conditional on a pred requires `true_computation` and `false_computation`"
                         : "a conditional on an s32 requires `branch_computations`");
  }
  const size_t branches = by_pred ? 2 : context().list(ListId(attrs->Find(Attr::kBranchComputations)->payload)).size();
  if (branches == 0)
    return Error(DiagnosticKind::kBadAttribute, range, "expected at least one branch in a conditional");
  if (operand_count != branches + 1) {
    return Error(DiagnosticKind::kOperandCount, range,
                 StrCat("expected ", branches + 1, " operands for a conditional with ", branches, " branches, found ",
                        operand_count));
  }
  return std::nullopt;
}

std::optional<bool> InstructionRules::SetOutfeedShape(InstructionDraft& draft, Operands operands, AttrTail* /*attrs*/) {
  if (!operands.empty()) draft.shape = context().shapes.Token();  // ignores the text
  return std::nullopt;
}

std::optional<bool> InstructionRules::TakeOriginOfElement(InstructionDraft& /*draft*/, Operands operands,
                                                          AttrTail* attrs) {
  if (operands.size() != 1) return std::nullopt;
  // As in XLA, a get-tuple-element has the original value of the tuple's operand.
  const Instruction tuple = module_->instruction(operands[0]);
  const AttrValue* index = attrs->Find(Attr::kIndex);
  if (tuple.opcode() == Opcode::kTuple && index != nullptr && attrs->Find(Attr::kOrigin) == nullptr) {
    const int64_t i = module_->DecodeInt64(index->payload);
    if (i >= 0 && i < tuple.operand_count()) {
      if (const std::optional<uint32_t> origin = tuple.operand(i).payload(Attr::kOrigin)) {
        attrs->Add({Attr::kOrigin, *origin});
      }
    }
  }
  return std::nullopt;
}

bool InstructionRules::NormalizeAttributes(InstructionDraft& draft, Operands operands, AttrTail* attrs) {
  using Rule = std::optional<bool> (InstructionRules::*)(InstructionDraft&, Operands, AttrTail*);
  static constexpr OpcodeRow<Rule> kRows[] = {
      {Opcode::kBroadcast, &InstructionRules::CheckBroadcast},
      {Opcode::kCustomCall, &InstructionRules::CheckCustomCall},
      {Opcode::kConditional, &InstructionRules::CheckConditional},
      {Opcode::kOutfeed, &InstructionRules::SetOutfeedShape},
      {Opcode::kGetTupleElement, &InstructionRules::TakeOriginOfElement},
  };
  static constexpr auto kRules = MakeOpcodeHandlers<Rule>(kRows);
  const Opcode opcode = draft.sugar && draft.opcode == Opcode::kAsyncStart ? draft.wrapped : draft.opcode;
  if (const Rule rule = kRules[static_cast<size_t>(opcode)]; rule != nullptr) {
    if (const std::optional<bool> done = (this->*rule)(draft, operands, attrs)) return *done;
  }
  if (HasTrait(opcode, kCollective) && FindAttrSpec(opcode, Attr::kToApply) != nullptr) {
    const AttrValue* global = attrs->Find(Attr::kUseGlobalDeviceIds);
    if (global != nullptr && global->payload != 0 && attrs->Find(Attr::kChannelId) == nullptr) {
      return Error(DiagnosticKind::kBadAttribute, {draft.opcode_offset, draft.opcode_size},
                   "missing attribute `channel_id`, which `use_global_device_ids=true` requires");
    }
  }
  hlokit::NormalizeAttributes(module_, opcode, operands, attrs->begin(), attrs->all());
  return NormalizeShape(draft, opcode, operands);
}

bool InstructionRules::SetSendShape(InstructionDraft& draft, Shape operand) {
  if (!operand.valid()) return true;
  ShapeTable& shapes = context().shapes;
  draft.shape = shapes.Tuple({operand, shapes.Scalar(ElementType::kU32), shapes.Token()});
  return true;
}

bool InstructionRules::SetSendDoneShape(InstructionDraft& draft, Shape /*operand*/) {
  draft.shape = context().shapes.Token();
  return true;
}

bool InstructionRules::SetReceivedShape(InstructionDraft& draft, Shape /*operand*/) {
  const Opcode opcode = draft.opcode;
  ShapeTable& shapes = context().shapes;
  if (!draft.shape.IsTuple() || draft.shape.tuple_size() == 0) {
    return Error(DiagnosticKind::kBadShape, {draft.opcode_offset, draft.opcode_size},
                 StrCat("expected a tuple shape that begins with the data for ", ToString(opcode), ", found ",
                        ToString(draft.shape)));
  }
  draft.shape = opcode == Opcode::kRecv
                    ? shapes.Tuple({draft.shape.element(0), shapes.Scalar(ElementType::kU32), shapes.Token()})
                    : shapes.Tuple({draft.shape.element(0), shapes.Token()});
  return true;
}

bool InstructionRules::SetRecvDoneShape(InstructionDraft& draft, Shape operand) {
  if (!operand.valid() || !operand.IsTuple() || operand.tuple_size() == 0) return true;
  draft.shape = context().shapes.Tuple({operand.element(0), context().shapes.Token()});
  return true;
}

bool InstructionRules::CheckDynamicReshape(InstructionDraft& draft, Shape operand) {
  if (!operand.valid() || !operand.IsArray() || !draft.shape.IsArray()) return true;
  if (operand.element_count() == draft.shape.element_count()) return true;
  return Error(DiagnosticKind::kShapeMismatch, {draft.opcode_offset, draft.opcode_size},
               StrCat("result ", ToString(draft.shape), " and operand ", ToString(operand),
                      " must have the same number of elements"));
}

// A value is not packed, so its layout has no element size.
bool InstructionRules::SetConstantLayout(InstructionDraft& draft, Shape /*operand*/) {
  if (!draft.shape.IsArray() || !draft.shape.has_layout()) return true;
  const LayoutExtras* const given = draft.shape.layout()->extras;
  if (given == nullptr || given->element_size_in_bits == 0) return true;
  LayoutExtras extras = *given;
  extras.element_size_in_bits = 0;
  ShapeTable& shapes = context().shapes;
  draft.shape = shapes.WithLayout(draft.shape, shapes.Layout(draft.shape.layout()->minor_to_major, extras));
  return true;
}

// XLA's constructors of these instructions compute the shape, using only the free part of the text's shape.
bool InstructionRules::NormalizeShape(InstructionDraft& draft, Opcode opcode, Operands operands) {
  using Rule = bool (InstructionRules::*)(InstructionDraft&, Shape);
  static constexpr OpcodeRow<Rule> kRows[] = {
      {Opcode::kSend, &InstructionRules::SetSendShape},
      {Opcode::kSendDone, &InstructionRules::SetSendDoneShape},
      {Opcode::kRecv, &InstructionRules::SetReceivedShape},
      {Opcode::kInfeed, &InstructionRules::SetReceivedShape},
      {Opcode::kRecvDone, &InstructionRules::SetRecvDoneShape},
      {Opcode::kDynamicReshape, &InstructionRules::CheckDynamicReshape},
      {Opcode::kConstant, &InstructionRules::SetConstantLayout},
  };
  static constexpr auto kRules = MakeOpcodeHandlers<Rule>(kRows);
  if (draft.sugar || !draft.shape.valid() || draft.has_error) return true;
  const Rule rule = kRules[static_cast<size_t>(opcode)];
  if (rule == nullptr) return true;
  return (this->*rule)(draft, operands.empty() ? Shape() : module_->instruction(operands[0]).shape());
}

bool InstructionRules::AdjustAttributesToShape(const InstructionDraft& draft, AttrTail* attrs) {
  if (attrs->empty() && !DutiesOf(draft.opcode).fit_to_shape) return true;
  const SourceRange range{draft.opcode_offset, draft.opcode_size};
  if (AttrValue* sharding = attrs->Find(Attr::kSharding); sharding != nullptr && draft.shape.IsTuple()) {
    sharding->payload = NormalizeForShape(&context(), ListId(sharding->payload), draft.shape).value;
  }
  if (const AttrValue* replication = attrs->Find(Attr::kParameterReplication)) {
    const auto given = static_cast<int64_t>(context().list(ListId(replication->payload)).size());
    if (given != draft.shape.leaf_count()) {
      return Error(DiagnosticKind::kBadAttribute, range,
                   StrCat("the parameter has ", draft.shape.leaf_count(),
                          " leaf buffers, but parameter_replication has ", given, " elements"));
    }
  }
  if (OpcodeSet{Opcode::kAsyncStart, Opcode::kAsyncUpdate}.Contains(draft.opcode)) {
    if (!draft.shape.IsTuple() || draft.shape.tuple_size() < 2 || !draft.shape.element(0).IsTuple()) {
      return Error(DiagnosticKind::kBadAsync, range,
                   StrCat("expected a shape ((operands), outputs, state...) for ", ToString(draft.opcode), ", found ",
                          ToString(draft.shape)));
    }
  }
  return true;
}

void InstructionRules::DropLegacyAttributes(const InstructionDraft& draft, AttrTail* attrs) {
  if (!DutiesOf(draft.opcode).drop_legacy) return;
  for (Attr dropped : {Attr::kMode, Attr::kToApply, Attr::kAsyncExecutionThread, Attr::kCalls}) {
    const AttrSpec* spec = FindAttrSpec(draft.opcode, dropped);
    if (spec != nullptr && spec->presence == AttrSpec::kLegacy) attrs->Remove(dropped);
  }
}

std::string UnknownOpcodeHint(std::string hint) {
  return StrCat(hint, hint.empty() ? "" : " ", "--allow-unknown keeps unknown opcodes");
}

bool InstructionRules::FinishComputation(ComputationId id, InstructionId root) {
  const ComputationRecord& c = module_->record(id);
  module_->SetRoot(id, root.valid() ? root : c.last);
  // Parameters may come in any order, but their numbers must be dense.
  std::vector<InstructionId> parameters;
  for (InstructionId i = c.first; i.valid(); i = module_->record(i).next) {
    if (module_->record(i).opcode == Opcode::kParameter) parameters.push_back(i);
  }
  std::vector<InstructionId> by_number(parameters.size());
  bool ok = true;
  for (InstructionId p : parameters) {
    const InstructionRecord& r = module_->record(p);
    const SourceRange range{r.source_offset, static_cast<uint32_t>(context().str(r.name).size())};
    if (r.payload >= by_number.size()) {
      Error(DiagnosticKind::kBadParameter, range,
            StrCat("parameter number ", r.payload, " is out of range: the computation has ", parameters.size(),
                   " parameters, numbered from 0"));
      ok = false;
    } else if (by_number[r.payload].valid()) {
      Error(DiagnosticKind::kBadParameter, range, StrCat("duplicate parameter number ", r.payload));
      ok = false;
    } else {
      by_number[r.payload] = p;
    }
  }
  if (ok) module_->SetParameters(id, std::move(by_number));
  return ok;
}

}  // namespace hlokit
