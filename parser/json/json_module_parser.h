// SPDX-License-Identifier: Apache-2.0
// Implementation of json_parser.h. One object parses one module.
//
// Values that are HLO text are parsed as in HLO text, and InstructionRules are those of both forms. A module has
// operands before their users, while JSON lists instructions in any order: those that refer to a later one are deferred
// until the end of the computation, which then restores the order of the list.
#ifndef HLOKIT_PARSER_JSON_JSON_MODULE_PARSER_H_
#define HLOKIT_PARSER_JSON_JSON_MODULE_PARSER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "ir/text/original_value.h"
#include "parser/hlo/attribute_parser.h"
#include "parser/hlo/literal_parser.h"
#include "parser/hlo/shape_parser.h"
#include "parser/json/json_cursor.h"
#include "parser/text/instruction_names.h"
#include "parser/text/instruction_rules.h"
#include "parser/text/parse_options.h"
#include "parser/text/text_cursor.h"

namespace hlokit {

class JsonModuleParser {
 public:
  JsonModuleParser(std::shared_ptr<const SourceBuffer> source, std::string_view text, const ParseOptions& options,
                   DiagnosticSink* sink, std::shared_ptr<Context> context);

  // Returns null after errors.
  std::unique_ptr<Module> Run();

 private:
  // A use, by name, of something defined elsewhere.
  struct Reference {
    StringId name;
    SourceRange range;
  };

  // An instruction being parsed.
  struct PendingInstruction {
    InstructionDraft draft;  // with a name, an opcode and a shape once they are parsed
    std::vector<AttrValue> attrs;
    std::vector<int64_t> unknown;  // attributes, as Attr::kUnknownAttributes
    std::vector<Reference> operands;
    std::vector<Reference> predecessors;  // control-predecessors
    SourceRange place;                    // of its name, or of its opening brace if it has none
    uint32_t seen = 0;                    // keys, by their index among the known ones
    bool broken = false;                  // an error was reported: skip further checks
    // Offsets of members that need the opcode or shape, if they come before it.
    uint32_t attributes_at = SourceRange::kNoOffset;
    uint32_t literal_at = SourceRange::kNoOffset;

    bool has_opcode() const { return draft.opcode_size != 0; }
    void Reset();
  };

  // An instruction that refers to a later one.
  struct DeferredInstruction {
    PendingInstruction pending;
    size_t position;  // index into order_
    enum State : uint8_t { kWaiting, kOpen, kAdded } state = kWaiting;
    size_t next = 0;  // the next reference to check
  };

  // ---- module and computations (json_parser.cc) ----
  bool ReadModule();
  bool ReadModuleMember(const JsonString& key);
  bool ReadFormat();
  bool ReadVersion();
  bool ReadComputations();
  bool ReadComputation();
  bool ReadInstructions(ComputationId computation);
  void FinishComputation(ComputationId computation, const Reference& root);
  ComputationId ComputationByName(const Reference& reference);
  ComputationId DefineComputation(const Reference& name);
  bool ResolveComputations();
  bool CheckCalls();
  void FinishModule();

  // ---- header and tables (json_header_parser.cc) ----
  bool ReadHeader();
  bool ReadHeaderMember(const JsonString& key);
  bool ReadCount(int64_t* value, std::string_view what);
  bool ReadInputOutputAlias();
  bool ReadBufferDonor();
  bool ReadEntryLayout();
  bool ReadOriginalArrayMember(const JsonString& key, OriginalArray* array, bool* known);
  bool ReadOriginalArray(ListId* id);
  bool ReadOriginRecoveryTable();
  bool ReadQuotedModule(StringId* text);
  bool ReadDebugAttributes();
  bool ReadDebugRecord(std::vector<int64_t>* records);
  bool ReadStackFrames();
  bool ReadStrings(std::vector<StringId>* out);
  // Reads rows of 32-bit numbers: objects that have all of the fields.
  bool ReadTable(absl::Span<const std::string_view> fields, std::vector<int64_t>* rows);

  // ---- instructions (json_instruction_parser.cc) ----
  bool ReadInstruction(PendingInstruction* d);
  bool ReadInstructionMember(const JsonString& key, PendingInstruction* d);
  bool ReadOpcode(PendingInstruction* d);
  bool ReadParameterNumber(PendingInstruction* d);
  bool ReadLiteral(PendingInstruction* d);
  bool ReadReferences(std::vector<Reference>* out, std::string_view what);
  bool CheckMembers(PendingInstruction* d);
  bool ReadMetadata(MetadataId* id);
  bool ReadMetadataField(const JsonString& key, Metadata* m, uint32_t* seen);
  void AddOrDefer();  // pending_
  // Returns the first reference from index `from` on to an instruction that is not in the module yet, and its index;
  // null if there is none.
  const Reference* FirstUndefined(const PendingInstruction& d, size_t from, size_t* index) const;
  // Returns the instruction; invalid if it was rejected and has no unique name for a placeholder.
  InstructionId Add(PendingInstruction& d);
  InstructionId AddPlaceholder(const PendingInstruction& d);
  void AddDeferred();
  void AddDeferredTree(size_t root);

  // ---- attributes (json_attribute_parser.cc) ----
  bool ReadAttributes(PendingInstruction* d);
  bool ReadAttribute(const JsonString& key, PendingInstruction* d);
  bool ReadValue(Attr attr, uint32_t* payload);
  bool ReadTextValue(Attr attr, uint32_t* payload);
  bool ReadPlainValue(PayloadKind kind, uint32_t* payload);
  bool ReadListValue(ElementKind kind, std::vector<int64_t>* list);
  bool ReadFrontendAttributes(ListId* id);
  bool ReadResultAccuracy(ListId* id);
  bool ReadStatistics(ListId* id);
  // Reads unrecognized attributes, kept as HLO text: [["name", "text"], ...], or single members.
  bool ReadUnknownPairs(std::string_view of, std::vector<int64_t>* out);
  bool ReadUnknownMember(const JsonString& key, std::string_view of, absl::Span<const std::string_view> known,
                         std::vector<int64_t>* out);
  bool ReadUnknownText(StringId* text);

  // ---- values and errors (json_value_parser.cc) ----
  // Parses the string `s` as HLO text: `read` parses text_in_, and must consume all of it. With `keeps_views`, the
  // value refers to the text, which is then kept as long as the context.
  template <typename Read>
  bool ReadText(const JsonString& s, bool keeps_views, Read read);
  bool ReadShape(Shape* shape);
  bool ReadIndex(ListId* id);
  bool ReadInts(std::vector<int64_t>* list);
  bool ReadBools(std::vector<int64_t>* list);
  bool ReadInt32(int64_t* value, std::string_view what);
  // Reads a number exactly; non-finite numbers are strings in JSON.
  bool ReadExact(float* value, std::string_view what);
  bool ReadExact(double* value, std::string_view what);
  template <typename T>
  bool ReadAnyExact(T* value, ElementType type, std::string_view what);
  // Reads a string that is a valid HLO name.
  bool ReadName(Reference* reference, std::string_view what);
  bool CheckName(const JsonString& s, std::string_view what);
  StringId InternString(const JsonString& s) {
    return s.escaped ? context().strings.Intern(s.value) : context().strings.InternStable(s.value);
  }
  // Runs `read` on the next value. After an error that leaves the text valid JSON, sets *broken and resumes after the
  // value. Returns false if parsing must stop.
  template <typename Read>
  bool Member(bool* broken, Read read);
  // Forwards the diagnostics of local_. `s`, if given, is the string that their locations refer to.
  void ForwardDiagnostics(const JsonString* s = nullptr);
  bool Error(DiagnosticKind kind, SourceRange range, std::string message, std::string hint = "") {
    failed_ = true;
    sink_->Error(kind, range, std::move(message), std::move(hint));
    return false;
  }
  // Reports an unknown key of an object called `of`, with the known ones. Returns true, with the value skipped, if
  // unknown keys are allowed.
  bool UnknownKey(const JsonString& key, std::string_view of, absl::Span<const std::string_view> known);
  // Returns the index of `key` among `known`. Otherwise reports it and returns known.size(), with *ok set if parsing
  // can go on. Reports duplicate keys.
  size_t FindKey(const JsonString& key, std::string_view of, absl::Span<const std::string_view> known, uint32_t* seen,
                 bool* ok);

  Context& context() { return *context_; }
  Module& module() { return *module_; }

  DiagnosticSink* sink_;
  DiagnosticSink local_;  // of values in HLO text and of rules_
  ParseOptions options_;
  JsonCursor in_;
  std::shared_ptr<Context> context_;
  std::unique_ptr<Module> module_;
  // Values in HLO text.
  TextCursor text_in_;
  ShapeParser shape_parser_;
  LiteralBudget literal_budget_;
  AttributeParser attribute_parser_;
  InstructionNames names_;
  InstructionRules rules_;
  std::string text_;                                    // a value, followed by a NUL
  std::unordered_map<std::string_view, Shape> shapes_;  // by text, since shapes recur
  std::vector<int64_t> list_;
  uint32_t seen_ = 0;  // keys of the module, and of its header
  uint32_t header_seen_ = 0;
  bool failed_ = false;   // an error was reported
  bool stopped_ = false;  // a limit was exceeded
  // Computations by name. The first use of an undefined one is in `mentions_`.
  absl::flat_hash_map<uint32_t, ComputationId> computations_;
  absl::flat_hash_map<uint32_t, Reference> mentions_;
  Reference entry_;
  std::vector<ComputationId> finished_;

  // State of the current computation.
  PendingInstruction pending_;
  std::vector<InstructionId> operands_;
  std::vector<AttrValue> attrs_;
  std::vector<InstructionId> order_;
  std::vector<DeferredInstruction> deferred_;
  absl::flat_hash_map<uint32_t, size_t> deferred_by_name_;
  bool computation_broken_ = false;
};

template <typename Read>
bool JsonModuleParser::Member(bool* broken, Read read) {
  const uint32_t start = in_.Offset();
  if (read()) return true;
  *broken = true;
  failed_ = true;
  if (in_.broken() || stopped_ || sink_->limit_reached()) return false;
  in_.Seek(start);
  return in_.Skip();
}

template <typename Read>
bool JsonModuleParser::ReadText(const JsonString& s, bool keeps_views, Read read) {
  std::string_view text;
  if (keeps_views) {
    // The context's copy ends in a NUL, as TextCursor requires.
    text_.assign(s.value);
    text_.push_back('\0');
    text = context().str(context().strings.Intern(text_));
    text.remove_suffix(1);
  } else {
    text_.assign(s.value);
    text = text_;
  }
  text_in_ = TextCursor(text, &local_, s.escaped ? 0 : s.range.offset + 1);
  bool ok = read();
  if (ok && !text_in_.AtEnd()) {
    ok = text_in_.ErrorHere(DiagnosticKind::kUnexpectedToken,
                            StrCat("expected the end of the string, found ", text_in_.DescribeNext()));
  }
  ForwardDiagnostics(&s);
  return ok;
}

}  // namespace hlokit

#endif  // HLOKIT_PARSER_JSON_JSON_MODULE_PARSER_H_
