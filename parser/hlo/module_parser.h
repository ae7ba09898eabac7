// SPDX-License-Identifier: Apache-2.0
// The engine behind parser.h. One object reads one module.
//
// The grammar nests without bound (operands in operands, computations in attributes), so there is no recursive descent:
// an explicit stack of frames, one for each open computation body and each open instruction, is advanced step by step.
// The common instruction, with named operands only, goes through one frame from head to end without ever switching.
#ifndef HLOKIT_PARSER_HLO_MODULE_PARSER_H_
#define HLOKIT_PARSER_HLO_MODULE_PARSER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/core/name_uniquer.h"
#include "ir/graph/async.h"
#include "ir/graph/module.h"
#include "parser/core/parser.h"
#include "parser/core/stack_frame_numbering.h"
#include "parser/core/text_cache.h"
#include "parser/core/text_cursor.h"
#include "parser/hlo/attribute_parser.h"
#include "parser/hlo/literal_parser.h"
#include "parser/hlo/shape_parser.h"

namespace hlokit {

class ModuleParser {
 public:
  ModuleParser(std::shared_ptr<const SourceBuffer> source, std::string_view text, const ParseOptions& options,
               DiagnosticSink* sink, std::shared_ptr<Context> context);

  // Null if anything was wrong.
  std::unique_ptr<Module> Run();

 private:
  // Reads the values of another form of module text and has this class check and add its instructions.
  friend class JsonModuleParser;

  struct Frame {
    enum Kind : uint8_t { kBody, kInstruction };
    enum Phase : uint8_t { kHead, kOperands, kAttributes };

    Kind kind = kInstruction;
    Phase phase = kHead;
    bool is_root = false;      // instruction marked ROOT
    bool nested = false;       // instruction that stands as an operand: no name, no attributes
    bool inline_body = false;  // body that stands as an attribute value
    bool sugar = false;        // the opcode is wrapped in an async one
    bool in_list = false;      // the computation being read is an element of a list
    bool has_error = false;    // an operand was wrong: no further complaints
    Opcode opcode = Opcode::kUnknown;
    Opcode wrapped = Opcode::kUnknown;
    Attr pending = Attr::kUnknownOpcode;  // attribute whose inline computation is being read
    ComputationId computation;            // body: its own; instruction: the one it goes to
    StringId name;
    uint32_t name_offset = 0;
    uint32_t name_size = 0;
    uint32_t opcode_offset = 0;
    uint32_t opcode_size = 0;
    uint32_t operands_begin = 0;  // on operands_
    uint32_t attrs_begin = 0;     // on attrs_
    uint32_t list_begin = 0;      // on computation_list_
    uint32_t shadowed_begin = 0;  // body: on shadowed_
    uint32_t payload = 0;
    InstructionId root;  // body: what ROOT marked
    bool has_root = false;
    MetadataId metadata;
    Shape shape;
    uint64_t seen_common = 0;  // attributes read, to report duplicates
  };

  enum class FrameStatus : uint8_t { kDone, kPushed, kFailed };

  // Payloads of attribute values in braces (MetadataIds too), by Attr and text.
  using Values = TextCache<uint32_t, 1024>;
  // An attribute value in braces that is to be read and remembered.
  struct Repeated {
    std::string_view text;
    size_t warnings = 0;  // before it was read
  };

  // ---- module level (module_parser.cc) ----
  bool ParseModuleLevel();
  bool ParseTopComputation();
  bool FinishTopComputation(ComputationId id);
  bool ParseSingleInstruction();
  bool SkipToNextComputation();
  bool FinishModule();
  void UniquifyNames();

  // ---- header (header_parser.cc) ----
  bool ParseHeader();
  bool ParseHeaderAttribute(std::string_view name, SourceRange range);
  bool ParseShapeIndex(ListId* index);
  bool ParseInputOutputAlias();
  bool ParseBufferDonor();
  bool ParseEntryLayout();
  bool ParseStackFrames();
  bool TakeFieldsInOrder(absl::Span<const std::string_view> fields, absl::Span<int64_t> values);
  bool ParseIndexedFields(absl::Span<const std::string_view> fields, absl::Span<int64_t> values);

  // ---- bodies and instructions (body_parser.cc) ----
  bool RunFrames();
  FrameStatus StepBody(size_t frame);
  FrameStatus FinishBody(size_t frame);
  FrameStatus StepInstruction(size_t frame);
  bool ParseHead(Frame& f);
  bool ParseOpcode(Frame& f);
  FrameStatus ParseOperands(size_t frame);
  FrameStatus ParseAttributes(size_t frame);
  FrameStatus ParseAttribute(size_t frame);
  FrameStatus ParseComputationValue(size_t frame, Attr attr);
  bool TakeRepeated(Attr attr, Repeated* repeated, uint32_t* payload);
  void Remember(Attr attr, const Repeated& repeated, uint32_t payload);
  FrameStatus ContinueComputationList(size_t frame);
  bool ParseInstructionList(ComputationId computation, uint32_t* payload);
  void OnComputationParsed(ComputationId id);
  bool Recover();
  void PushInstruction(ComputationId computation);
  bool ResolveOperand(std::string_view name, SourceRange range, Shape declared, InstructionId* id);
  bool ParseTupleElements(InstructionId* id, ComputationId computation);
  InstructionId Lookup(StringId name, ComputationId computation) const;
  void Define(StringId name, InstructionId id, ComputationId computation);
  StringId AnonymousName(Opcode opcode);

  // ---- finishing an instruction (finish_instruction.cc) ----
  FrameStatus FinishInstruction(size_t frame);
  bool CheckOperandCount(const Frame& f);
  bool CompleteAttributes(const Frame& f, Opcode opcode);
  bool NormalizeAttributes(Frame& f);
  bool NormalizeShape(Frame& f, Opcode opcode);
  void DropLegacyAttributes(const Frame& f);
  void SetThread(ComputationId computation, StringId thread);
  void CopyToWrapped(InstructionId async);
  bool IsElided(AttrValue value) const;
  bool InferResult(Frame& f);
  bool AdjustAttributesToShape(Frame& f);
  bool FinishAsync(Frame& f);
  bool BindDeferredOperands(const Frame& f, InstructionId start);
  void AppendDeferredOperands();
  AttrValue* FindAttr(const Frame& f, Attr attr);
  void RemoveAttr(const Frame& f, Attr attr);

  bool Error(DiagnosticKind kind, SourceRange range, std::string message, std::string hint = "") {
    return in_.Error(kind, range, std::move(message), std::move(hint));
  }
  // The interned form of a view into the source text.
  StringId InternView(std::string_view s) { return context_->strings.InternStable(s); }
  SourceRange NameRange(const Frame& f) const { return {f.name_offset, f.name_size}; }

  std::shared_ptr<const SourceBuffer> source_;
  ParseOptions options_;
  DiagnosticSink* sink_;
  std::shared_ptr<Context> context_;
  std::unique_ptr<Module> module_;
  TextCursor in_;
  ShapeParser shapes_;
  LiteralBudget literal_budget_;
  AttributeParser attribute_parser_;
  std::vector<int64_t> list_;

  std::vector<Frame> frames_;
  std::vector<InstructionId> operands_;
  std::vector<AttrValue> attrs_;
  std::vector<int64_t> computation_list_;
  // The innermost visible instruction (computation) of each name, by StringId.
  std::vector<InstructionId> instruction_of_name_;
  std::vector<ComputationId> computation_of_name_;
  // Names that an inline body hides, to be restored at its end.
  std::vector<std::pair<StringId, InstructionId>> shadowed_;
  // Computations in the order their bodies ended, which is the order in which XLA gives them unique names.
  std::vector<ComputationId> finished_;
  ComputationId entry_;
  bool single_instruction_ = false;
  bool duplicate_names_ = false;
  std::unique_ptr<NameUniquer> anonymous_;
  std::vector<AttrValue> wrapped_attrs_;
  std::unique_ptr<Values> values_ = std::make_unique<Values>();
  StackFrameNumbering frame_numbering_{StackFrames()};
  AsyncStarts async_starts_;
  // Parameters that late operands add to the computations hidden by sugar, which are in the table from their start on.
  absl::flat_hash_map<uint32_t, std::vector<InstructionId>> deferred_parameters_;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_MODULE_PARSER_H_
