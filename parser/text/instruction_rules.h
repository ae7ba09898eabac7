// SPDX-License-Identifier: Apache-2.0
// The rules for instructions of both forms, HLO text and JSON: checks and canonical form of operands, attributes and
// shapes before an instruction is added to the module. Those of XLA's parser and constructors.
#ifndef HLOKIT_PARSER_TEXT_INSTRUCTION_RULES_H_
#define HLOKIT_PARSER_TEXT_INSTRUCTION_RULES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"

namespace hlokit {

// An instruction that is not in the module yet, without operands and attributes.
struct InstructionDraft {
  bool sugar = false;      // the opcode is wrapped in an async one
  bool has_error = false;  // an operand had an error: suppress further errors
  Opcode opcode = Opcode::kUnknown;
  Opcode wrapped = Opcode::kUnknown;
  ComputationId computation;
  StringId name;
  uint32_t name_offset = 0;
  uint32_t name_size = 0;
  uint32_t opcode_offset = 0;
  uint32_t opcode_size = 0;
  uint32_t payload = 0;  // number of a parameter, LiteralId of a constant
  MetadataId metadata;
  Shape shape;  // invalid if the text has none
};

// The attributes of one instruction, at the end of a stack of attributes.
class AttrTail {
 public:
  AttrTail(std::vector<AttrValue>* all, size_t begin) : all_(*all), begin_(begin) {}

  std::vector<AttrValue>* all() { return &all_; }
  size_t begin() const { return begin_; }
  bool empty() const { return all_.size() == begin_; }
  // Returns null if the instruction does not have the attribute. Valid until the next change.
  AttrValue* Find(Attr attr);
  void Add(AttrValue value) { all_.push_back(value); }
  void Remove(Attr attr);

 private:
  std::vector<AttrValue>& all_;
  size_t begin_;
};

// Methods return false after an error, which is in the sink.
// Returns the hint for an unknown opcode, without ParseOptions::allow_unknown.
std::string UnknownOpcodeHint(std::string hint);

class InstructionRules {
 public:
  using Operands = absl::Span<const InstructionId>;

  InstructionRules(Module* module, DiagnosticSink* sink) : module_(module), sink_(sink) {}

  bool CheckOperandCount(const InstructionDraft& draft, Operands operands);
  // Checks and canonicalizes attributes of single opcodes, beyond the tables, and the shape.
  bool NormalizeAttributes(InstructionDraft& draft, Operands operands, AttrTail* attrs);
  // Checks required attributes of `opcode`, adds defaulted ones, and removes those with default values.
  bool CompleteAttributes(const InstructionDraft& draft, Opcode opcode, AttrTail* attrs);
  // Adjusts attributes that depend on the shape, which must be valid.
  bool AdjustAttributesToShape(const InstructionDraft& draft, AttrTail* attrs);
  // Removes attributes that are parsed but not stored.
  void DropLegacyAttributes(const InstructionDraft& draft, AttrTail* attrs);

  // Sets root and parameters of a computation with all its instructions. `root`: by default the last instruction.
  bool FinishComputation(ComputationId id, InstructionId root);

 private:
  // Of single opcodes. A value is the result of NormalizeAttributes: nothing more is to be done.
  std::optional<bool> CheckBroadcast(InstructionDraft& draft, Operands operands, AttrTail* attrs);
  std::optional<bool> CheckCustomCall(InstructionDraft& draft, Operands operands, AttrTail* attrs);
  std::optional<bool> CheckConditional(InstructionDraft& draft, Operands operands, AttrTail* attrs);
  std::optional<bool> SetOutfeedShape(InstructionDraft& draft, Operands operands, AttrTail* attrs);
  // As in XLA, a get-tuple-element has the original value of the tuple's operand.
  std::optional<bool> TakeOriginOfElement(InstructionDraft& draft, Operands operands, AttrTail* attrs);
  bool NormalizeShape(InstructionDraft& draft, Opcode opcode, Operands operands);
  // `operand`: the shape of the first operand; invalid if there is none.
  bool SetSendShape(InstructionDraft& draft, Shape operand);
  bool SetSendDoneShape(InstructionDraft& draft, Shape operand);
  bool SetReceivedShape(InstructionDraft& draft, Shape operand);
  bool SetRecvDoneShape(InstructionDraft& draft, Shape operand);
  bool CheckDynamicReshape(InstructionDraft& draft, Shape operand);
  bool SetConstantLayout(InstructionDraft& draft, Shape operand);
  Context& context() { return module_->context(); }
  bool Error(DiagnosticKind kind, SourceRange range, std::string message) {
    sink_->Error(kind, range, std::move(message), "");
    return false;
  }

  Module* module_;
  DiagnosticSink* sink_;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_TEXT_INSTRUCTION_RULES_H_
