// SPDX-License-Identifier: Apache-2.0
// Implementation of parser.h. One object parses one module.
//
// The grammar nests without bound (operands in operands, computations in attributes), so there is no recursive descent:
// an explicit stack has a frame for each open computation body and each open instruction. The common instruction, with
// named operands only, needs one frame from head to end.
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
#include "absl/container/flat_hash_set.h"
#include "ir/graph/async.h"
#include "ir/graph/module.h"
#include "parser/hlo/attribute_parser.h"
#include "parser/hlo/literal_parser.h"
#include "parser/hlo/shape_parser.h"
#include "parser/text/instruction_names.h"
#include "parser/text/instruction_rules.h"
#include "parser/text/parse_options.h"
#include "parser/text/stack_frame_numbering.h"
#include "parser/text/text_cache.h"
#include "parser/text/text_cursor.h"

namespace hlokit {

class ModuleParser {
 public:
  ModuleParser(std::shared_ptr<const SourceBuffer> source, std::string_view text, const ParseOptions& options,
               DiagnosticSink* sink, std::shared_ptr<Context> context);

  // Returns null after errors.
  std::unique_ptr<Module> Run();

 private:
  // An open computation body, or an open instruction. Of a body, the draft has the computation alone.
  struct Frame : InstructionDraft {
    enum Kind : uint8_t { kBody, kInstruction };
    enum Phase : uint8_t { kHead, kOperands, kAttributes };

    Kind kind = kInstruction;
    Phase phase = kHead;
    bool is_root = false;                 // instruction marked ROOT
    bool nested = false;                  // instruction as an operand: no name, no attributes
    bool inline_body = false;             // body as an attribute value
    bool in_list = false;                 // the current computation is an element of a list
    Attr pending = Attr::kUnknownOpcode;  // attribute with the current inline computation
    uint32_t operands_begin = 0;          // index into operands_
    uint32_t attrs_begin = 0;             // index into attrs_
    uint32_t list_begin = 0;              // index into computation_list_
    uint32_t shadowed_begin = 0;          // body: InstructionNames::shadowed at its start
    InstructionId root;                   // body: the instruction marked ROOT
    bool has_root = false;
  };

  enum class FrameStatus : uint8_t { kDone, kPushed, kFailed };

  // Payloads of braced attribute values (including MetadataIds), by Attr and text.
  using Values = TextCache<uint32_t, 1024>;
  // A braced attribute value to parse and cache.
  struct Repeated {
    std::string_view text;
    size_t warnings = 0;  // before parsing it
  };

  // ---- module level (module_parser.cc) ----
  bool ParseModuleLevel();
  bool ParseTopComputation();
  bool ParseSingleInstruction();
  bool SkipToNextComputation();
  // Reports wrong shapes of instructions that depend on no error.
  void CheckSoundShapes();
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
  bool Recover();
  void PushInstruction(ComputationId computation);
  bool ResolveOperand(std::string_view name, SourceRange range, Shape declared, InstructionId* id);
  bool ParseTupleElements(InstructionId* id, ComputationId computation);

  // ---- attributes of an instruction (instruction_attributes.cc) ----
  FrameStatus ParseAttributes(size_t frame);
  FrameStatus ParseAttribute(size_t frame);
  FrameStatus ParseComputationValue(size_t frame, Attr attr);
  bool TakeRepeated(Attr attr, Repeated* repeated, uint32_t* payload);
  void Remember(Attr attr, const Repeated& repeated, uint32_t payload);
  FrameStatus ContinueComputationList(size_t frame);
  FrameStatus ParseComparisonOrder(size_t frame, SourceRange name);
  bool ParseInstructionList(ComputationId computation, uint32_t* payload);
  void OnComputationParsed(ComputationId id);

  // ---- finishing an instruction (finish_instruction.cc) ----
  FrameStatus FinishInstruction(size_t frame);
  void SetThread(ComputationId computation, StringId thread);
  void CopyToWrapped(InstructionId async);
  bool InferResult(Frame& f);
  bool FinishAsync(Frame& f);
  bool BindDeferredOperands(const Frame& f, InstructionId start);
  void AppendDeferredOperands();
  AttrTail AttrsOf(const Frame& f) { return AttrTail(&attrs_, f.attrs_begin); }
  absl::Span<const InstructionId> OperandsOf(const Frame& f) const {
    return absl::MakeConstSpan(operands_).subspan(f.operands_begin);
  }

  bool Error(DiagnosticKind kind, SourceRange range, std::string message, std::string hint = "") {
    return in_.Error(kind, range, std::move(message), std::move(hint));
  }
  // Interns a view into the source text.
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
  InstructionNames names_;
  InstructionRules rules_;
  std::vector<ComputationId> computation_of_name_;  // by StringId
  // Computations in the order in which their bodies ended, which is the order in which XLA makes their names unique.
  std::vector<ComputationId> finished_;
  ComputationId entry_;
  bool single_instruction_ = false;
  bool duplicate_names_ = false;
  // The elements written `tuple#index`: by tuple and index, and the set of their ids.
  absl::flat_hash_map<std::pair<uint32_t, int64_t>, InstructionId> tuple_elements_;
  absl::flat_hash_set<uint32_t> derived_names_;
  std::vector<AttrValue> wrapped_attrs_;
  std::unique_ptr<Values> values_ = std::make_unique<Values>();
  StackFrameNumbering frame_numbering_{StackFrames()};
  AsyncStarts async_starts_;
  // Parameters that deferred operands add to computations hidden by sugar; these have entries from their start on.
  absl::flat_hash_map<uint32_t, std::vector<InstructionId>> deferred_parameters_;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_MODULE_PARSER_H_
