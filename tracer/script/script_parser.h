// SPDX-License-Identifier: Apache-2.0
// The parser of scripts: expressions in expression_parser.cc, statements in statement_parser.cc, blocks in
// block_parser.cc, names of calls after the whole text was read in script_parser.cc.
#ifndef HLOKIT_TRACER_SCRIPT_SCRIPT_PARSER_H_
#define HLOKIT_TRACER_SCRIPT_SCRIPT_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/context.h"
#include "tracer/script/script_lexer.h"
#include "tracer/script/script_program.h"

namespace hlokit::lazy::script {

// Returns true for the first words of statements, such as "print".
bool IsStatementName(std::string_view name);

class ScriptParser {
 public:
  ScriptParser(const SourceBuffer& source, ScriptProgram* program, DiagnosticSink* sink)
      : source_(source), text_(source.text()), program_(*program), sink_(*sink) {}

  bool Parse();

 private:
  // An operator or bracket whose operands are not complete.
  struct Pending {
    enum class Kind : uint8_t { kUnary, kBinary, kLogic, kHash, kParentheses, kList, kCall, kIndex } kind;
    int precedence = 0;  // 0: a bracket
    Operator op = Operator::kAdd;
    SourceRange range = {};    // of the operator or bracket
    size_t operands = 0;       // complete when it began
    uint32_t instruction = 0;  // kLogic: its jump; kCall: the call site; kHash: the literal
    bool comma = false;
    bool named = false;          // kCall: the current argument's name was read
    CallArgument argument = {};  // kCall: the current one
  };
  // An open block of statements.
  struct OpenBlock {
    enum class Kind : uint8_t { kGuard, kIf, kElse, kFor, kWhile, kCapture, kFunction } kind;
    SourceRange range = {};            // of the statement that opened it
    uint32_t start = 0;                // where a loop repeats
    std::vector<uint32_t> exits = {};  // jumps to the end
    uint32_t otherwise = kNoJump;      // jump to the next branch
    int32_t loop = -1;                 // number of the loop
    uint32_t capture = 0;              // number of the capture
    bool has_scope = false;            // kFunction: not an error inside of another one
    uint32_t outer_region = 0;
  };
  static constexpr uint32_t kNoJump = ~uint32_t{0};
  static constexpr size_t kMaxDepth = 200;
  static constexpr size_t kMaxBlockDepth = 200;
  static constexpr size_t kMaxParameters = 255;

  // What is known of a variable of the current function.
  struct Variable {
    bool assigned = false;
    bool mentioned = false;
    int32_t loop = -1;            // innermost loop with all mentions
    SourceRange first_read = {};  // before an assignment, in a loop
  };

  // Names of the variables of a function.
  struct Scope {
    size_t function = 0;
    absl::flat_hash_map<std::string, uint32_t> numbers;
    std::vector<Variable> variables;
    int32_t loop = -1;
    uint32_t region = 0;
  };

  // Reports an error. Returns false.
  bool Error(SourceRange range, std::string message, std::string hint = "");
  bool ErrorAt(const Token& token, std::string message, std::string hint = "") {
    return Error(token.range(), std::move(message), std::move(hint));
  }
  Token Peek(bool operand = true) const { return LexAt(text_, at_, operand, !brackets_.empty()); }
  Token Take(bool operand = true) {
    const Token token = Peek(operand);
    at_ = token.end;
    return token;
  }
  // Returns the rest of the line, without a comment.
  std::string_view RestOfLine() const;
  SourceRange RangeOf(std::string_view part) const {
    return {static_cast<uint32_t>(part.data() - text_.data()), static_cast<uint32_t>(part.size())};
  }
  // Requires the end of the line.
  bool EndOfStatement(std::string_view after);

  Function& function() { return program_.functions[scope_->function]; }
  uint32_t Emit(Code code, SourceRange range, uint32_t a = 0, uint32_t b = 0);
  uint32_t Here() { return static_cast<uint32_t>(function().code.size()); }
  void Patch(uint32_t jump) { function().code[jump].a = Here(); }
  uint32_t Constant(Value value);

  // ---- expressions ----
  // Parses an expression and emits its code. `range`: receives its place.
  bool Expression(SourceRange* range = nullptr);
  bool Operand();
  // Parses what follows an operand. Sets `done` where the expression ends.
  bool AfterOperand(bool* done);
  bool NameOperand(const Token& name);
  bool HashOperand();
  bool LiteralOperand();
  bool OpenCall(std::string name, SourceRange name_range, const Token& parenthesis, size_t operands);
  bool Push(Pending pending);
  void PushOperand(SourceRange range);
  void Reduce();
  void ReduceTo(int precedence, bool right_associative);
  // Ends the current member of the innermost bracket.
  void EndMember();
  bool CloseBracket(const Token& token);
  bool TakeArgumentName();
  bool MissingClose();

  // ---- variables ----
  uint32_t VariableNumber(std::string_view name);
  void Mention(uint32_t variable);
  bool Load(const Token& variable);
  uint32_t Target(std::string_view name);
  std::vector<std::string_view> VariableNames() const;
  void FinishScope();

  // ---- statements ----
  bool Statement(const Token& first);
  bool Assignment(bool* is_assignment);
  bool ExpressionStatement();
  bool Keyword(const Token& word);
  bool ValueList(uint32_t* count);
  bool Dump(SourceRange range);
  bool Devices(const Token& word);
  bool Delete();

  // ---- blocks ----
  bool BlockKeyword(const Token& word, bool* known);
  bool OpenGuard(const Token& word);
  bool OpenCompile(const Token& word, Block* block);
  bool OpenLoop(const Token& word);
  bool OpenIf(const Token& word);
  bool Otherwise(const Token& word);
  bool OpenCapture(const Token& word);
  bool OpenFunction(const Token& word);
  bool ParameterList(Function* made);
  bool CloseBlock(const Token& word);
  bool Return(const Token& word);
  bool LeaveLoop(const Token& word);
  void OpenBlockOf(OpenBlock block);
  bool EnterRegion();
  void LeaveRegion(uint32_t region);
  // Emits the ends of guards inside of the innermost block for which `stop` is true; `to` receives that block.
  bool CloseGuards(bool (*stop)(const OpenBlock&), OpenBlock** to);

  // ---- after the text ----
  void ResolveCalls();
  void ResolveCall(CallSite* call);

  const SourceBuffer& source_;
  const std::string_view text_;
  ScriptProgram& program_;
  DiagnosticSink& sink_;
  Context context_;  // of shapes and values that are checked
  size_t at_ = 0;
  size_t line_start_ = 0;  // of the current line
  uint32_t line_ = 1;
  SourceRange statement_;  // the current one

  std::vector<Pending> pending_;
  std::vector<SourceRange> operands_;
  std::vector<size_t> brackets_;  // of pending_
  bool expects_operand_ = true;

  std::vector<Scope> scopes_;  // of the top level, and of the function being read
  Scope* scope_ = nullptr;
  absl::flat_hash_map<std::string, size_t> function_numbers_;  // of the script, by name
  std::vector<OpenBlock> open_;
  bool in_capture_ = false;
  bool statements_before_ = false;  // `devices` must be the first statement
};

}  // namespace hlokit::lazy::script

#endif  // HLOKIT_TRACER_SCRIPT_SCRIPT_PARSER_H_
