// SPDX-License-Identifier: Apache-2.0
// What the exporter keeps in attributes of hlokit, so that HLO -> StableHLO -> HLO gives the same module.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "ir/core/str_cat.h"
#include "ir/graph/complete_attributes.h"
#include "ir/ops/opcode.h"
#include "parser/hlo/attribute_parser.h"
#include "parser/hlo/shape_parser.h"
#include "parser/stablehlo/import/converter.h"
#include "parser/stablehlo/kept_attributes.h"
#include "parser/text/text_cursor.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

bool Converter::IsOmitted(const Op& op, size_t element) const {
  const NodeId list = Attribute(op, kOmittedElements);
  if (!list.valid() || nodes().kind(list) != NodeKind::kArray) return false;
  for (size_t i = 0; i < nodes().child_count(list); ++i) {
    if (nodes().IntegerValue(nodes().child(list, i)) == static_cast<int64_t>(element)) return true;
  }
  return false;
}

void Converter::Materialize(mlir::ValueId value) {
  const auto found = elements_.find(value.value);
  if (found == elements_.end() || values_[value.value].valid()) return;
  const auto [tuple, index] = found->second;
  if (module_->record(tuple).parent != frame().computation) return;  // reported as a value from outside
  Bind(value, Element(tuple, index));
}

InstructionId Converter::WholeOf(const Op& op) {
  if (elements_.empty() && op.operand_count == 0) return {};
  if (!Attribute(op, kWhole).valid()) return {};
  InstructionId whole;
  int64_t index = 0;
  for (mlir::ValueId value : program_.operands_of(op)) {
    InstructionId tuple;
    int64_t element = -1;
    if (const auto found = elements_.find(value.value); found != elements_.end()) {
      tuple = found->second.first;
      element = found->second.second;
    } else if (const InstructionId known = values_[value.value]; known.valid()) {
      const Instruction instruction = module_->instruction(known);
      if (instruction.opcode() != Opcode::kGetTupleElement) return {};
      tuple = instruction.operand(0).id();
      element = instruction.int_attr(Attr::kIndex);
    }
    if (!tuple.valid() || element != index++ || (whole.valid() && whole != tuple)) return {};
    if (module_->record(tuple).parent != frame().computation) return {};
    whole = tuple;
  }
  return whole.valid() && shape_of(whole).tuple_size() == index ? whole : InstructionId();
}

Opcode Converter::KeptOpcode(const Op& op) const {
  const NodeId text = Attribute(op, kOpcode);
  if (!text.valid() || nodes().kind(text) != NodeKind::kString) return Opcode::kUnknown;
  return OpcodeFromText(nodes().text(text)).value_or(Opcode::kUnknown);
}

void Converter::SetKeptAttributes(const Op& op, InstructionId id) {
  const NodeId dictionary = Attribute(op, kAttributes);
  if (!dictionary.valid() || nodes().kind(dictionary) != NodeKind::kDictionary) return;
  for (size_t k = 0; k < kAttrCount; ++k) {
    const Attr attr = static_cast<Attr>(k);
    if (!IsText(attr)) continue;
    const NodeId value = nodes().Entry(dictionary, ToString(attr));
    if (!value.valid() || nodes().kind(value) != NodeKind::kString) continue;
    if (FindAttrSpec(module_->instruction(id).opcode(), attr) == nullptr) continue;
    // A NUL follows the text of a cursor, and the text stays with the context.
    const std::string_view stored = context().str(context().strings.Intern(StrCat(nodes().text(value), '\0')));
    DiagnosticSink sink;
    TextCursor in(stored.substr(0, stored.size() - 1), &sink);
    constexpr int64_t kMaxNesting = 64;
    ShapeParser shape_parser(&in, &context(), kMaxNesting);
    LiteralBudget budget;
    AttributeParser parser(&in, &context(), &shape_parser, &budget);
    uint32_t payload = 0;
    if (!parser.Parse(attr, &payload) || !in.AtEnd()) continue;
    module_->SetAttr(id, attr, payload);
    // The thread is also that of the computation.
    const Computation called = module_->instruction(id).computation_attr(Attr::kCalls);
    if (attr == Attr::kAsyncExecutionThread && called.valid()) {
      module_->SetExecutionThread(called.id(), StringId(payload));
    }
  }
}

void Converter::SetNamedAttributes(const Op& op, InstructionId id) {
  if (op.definition == nullptr) return;
  const Opcode opcode = module_->instruction(id).opcode();
  for (const AttrSpec& spec : InfoOf(opcode).attributes) {
    const Attr attr = spec.attr;
    if (FormOf(attr) != AttributeForm::kNamed || op.definition->FindAttribute(ToString(attr)) == nullptr) continue;
    if (!Attribute(op, ToString(attr)).valid()) continue;
    AttrValue value = {attr, 0};
    switch (InfoOf(InfoOf(attr).type).payload) {
      case PayloadKind::kBool:
        value.payload = IntOf(op, ToString(attr)) != 0;
        break;
      case PayloadKind::kInt64:
        value = Int(attr, IntOf(op, ToString(attr)));
        break;
      case PayloadKind::kString:
        value = String(attr, StringOf(op, ToString(attr)));
        break;
      case PayloadKind::kList: {
        const absl::StatusOr<Ints> list = IntsOf(op, ToString(attr));
        if (!list.ok()) continue;  // the verifier of operations says what is wrong
        value = List(attr, *list);
        break;
      }
      case PayloadKind::kEnum:
      case PayloadKind::kFloat:
      case PayloadKind::kComputation:
      case PayloadKind::kShape:
      case PayloadKind::kLiteral:
      case PayloadKind::kMetadata:
        continue;  // no plain values
    }
    if (!IsElided(*module_, opcode, value)) module_->SetAttr(id, attr, value.payload);
  }
}

void Converter::RememberControl(std::string_view name, NodeId value, InstructionId id) {
  // Of a transfer the start has them.
  const Opcode opcode = module_->instruction(id).opcode();
  if (HasTrait(opcode, kTransfers) && HasTrait(opcode, kEndsAsync)) return;
  if (name == kControlId && nodes().IntegerValue(value)) {
    control_ids_.try_emplace(*nodes().IntegerValue(value), id);
  } else if (name == kControlPredecessors) {
    control_successors_.emplace_back(id, value);
  }
}

void Converter::SetControlPredecessors() {
  for (const auto& [id, numbers] : control_successors_) {
    Ints predecessors;
    absl::flat_hash_set<uint32_t> known;
    for (int64_t number : nodes().Integers(numbers).value_or(Ints())) {
      const auto found = control_ids_.find(number);
      // A later instruction could depend on this one.
      if (found == control_ids_.end() || found->second.value >= id.value) continue;
      if (module_->record(found->second).parent != module_->record(id).parent) continue;
      if (known.insert(found->second.value).second) predecessors.push_back(found->second.value);
    }
    if (predecessors.empty()) continue;
    module_->SetAttr(id, Attr::kControlPredecessors, module_->ListPayload(predecessors));
  }
}

}  // namespace hlokit::stablehlo
