// SPDX-License-Identifier: Apache-2.0
#include "parser/text/instruction_rules.h"

#include <algorithm>
#include <array>
#include <optional>

#include "ir/core/str_cat.h"
#include "ir/graph/complete_attributes.h"
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

bool InstructionRules::NormalizeAttributes(InstructionDraft& draft, Operands operands, AttrTail* attrs) {
  const SourceRange range{draft.opcode_offset, draft.opcode_size};
  const auto operand_shape = [&](size_t i) { return module_->instruction(operands[i]).shape(); };
  const size_t operand_count = operands.size();
  const Opcode opcode = draft.sugar && draft.opcode == Opcode::kAsyncStart ? draft.wrapped : draft.opcode;
  if (opcode == Opcode::kBroadcast && operand_count > 0) {
    if (attrs->Find(Attr::kDimensions) == nullptr && !operand_shape(0).IsScalar()) {
      return Error(DiagnosticKind::kMissingAttribute, range,
                   "missing attribute `dimensions` for broadcast of an array");
    }
  } else if (opcode == Opcode::kCustomCall) {
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
  } else if (opcode == Opcode::kConditional) {
    if (operand_count == 0)
      return Error(DiagnosticKind::kOperandCount, range, "missing branch index of the conditional");
    const Shape index = operand_shape(0);
    if (!index.IsScalar() ||
        (index.element_type() != ElementType::kPred && index.element_type() != ElementType::kS32)) {
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
    const size_t branches =
        by_pred ? 2 : context().list(ListId(attrs->Find(Attr::kBranchComputations)->payload)).size();
    if (branches == 0)
      return Error(DiagnosticKind::kBadAttribute, range, "expected at least one branch in a conditional");
    if (operand_count != branches + 1) {
      return Error(DiagnosticKind::kOperandCount, range,
                   StrCat("expected ", branches + 1, " operands for a conditional with ", branches, " branches, found ",
                          operand_count));
    }
  } else if (opcode == Opcode::kOutfeed && operand_count > 0) {
    draft.shape = context().shapes.Token();  // ignores the text
  } else if (opcode == Opcode::kGetTupleElement && operand_count == 1) {
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
  }
  if (HasTrait(opcode, kCollective) && FindAttrSpec(opcode, Attr::kToApply) != nullptr) {
    const AttrValue* global = attrs->Find(Attr::kUseGlobalDeviceIds);
    if (global != nullptr && global->payload != 0 && attrs->Find(Attr::kChannelId) == nullptr) {
      return Error(DiagnosticKind::kBadAttribute, range,
                   "missing attribute `channel_id`, which `use_global_device_ids=true` requires");
    }
  }
  hlokit::NormalizeAttributes(module_, opcode, operands, attrs->begin(), attrs->all());
  return NormalizeShape(draft, opcode, operands);
}

// XLA's constructors of these instructions compute the shape, using only the free part of the text's shape.
bool InstructionRules::NormalizeShape(InstructionDraft& draft, Opcode opcode, Operands operands) {
  const SourceRange range{draft.opcode_offset, draft.opcode_size};
  if (draft.sugar || !draft.shape.valid() || draft.has_error) return true;
  ShapeTable& shapes = context().shapes;
  const bool has_operand = !operands.empty();
  const Shape operand = has_operand ? module_->instruction(operands[0]).shape() : Shape();
  if (opcode == Opcode::kSend && has_operand) {
    draft.shape = shapes.Tuple({operand, shapes.Scalar(ElementType::kU32), shapes.Token()});
  } else if (opcode == Opcode::kSendDone) {
    draft.shape = shapes.Token();
  } else if (opcode == Opcode::kRecv || opcode == Opcode::kInfeed) {
    if (!draft.shape.IsTuple() || draft.shape.tuple_size() == 0) {
      return Error(DiagnosticKind::kBadShape, range,
                   StrCat("expected a tuple shape that begins with the data for ", ToString(opcode), ", found ",
                          ToString(draft.shape)));
    }
    draft.shape = opcode == Opcode::kRecv
                      ? shapes.Tuple({draft.shape.element(0), shapes.Scalar(ElementType::kU32), shapes.Token()})
                      : shapes.Tuple({draft.shape.element(0), shapes.Token()});
  } else if (opcode == Opcode::kRecvDone && has_operand && operand.IsTuple() && operand.tuple_size() > 0) {
    draft.shape = shapes.Tuple({operand.element(0), shapes.Token()});
  } else if (opcode == Opcode::kDynamicReshape && has_operand && operand.IsArray() && draft.shape.IsArray()) {
    if (operand.element_count() != draft.shape.element_count()) {
      return Error(DiagnosticKind::kShapeMismatch, range,
                   StrCat("result ", ToString(draft.shape), " and operand ", ToString(operand),
                          " must have the same number of elements"));
    }
  } else if (opcode == Opcode::kConstant && draft.shape.IsArray() && draft.shape.has_layout() &&
             draft.shape.layout()->extras != nullptr && draft.shape.layout()->extras->element_size_in_bits != 0) {
    // A value is not packed, so its layout has no element size.
    LayoutExtras extras = *draft.shape.layout()->extras;
    extras.element_size_in_bits = 0;
    draft.shape = shapes.WithLayout(draft.shape, shapes.Layout(draft.shape.layout()->minor_to_major, extras));
  }
  return true;
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
  if (draft.opcode == Opcode::kAsyncStart || draft.opcode == Opcode::kAsyncUpdate) {
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
