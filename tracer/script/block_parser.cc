// SPDX-License-Identifier: Apache-2.0
// Blocks of scripts: loops, branches, functions, captures, and those that set something until their end.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "tracer/graph/string_split.h"
#include "tracer/script/script_parser.h"

namespace hlokit::lazy::script {
namespace {

// Removes and returns the first word.
std::string_view TakeWord(std::string_view* s) {
  *s = Trim(*s);
  const size_t end = std::min(s->find_first_of(" \t"), s->size());
  const std::string_view word = s->substr(0, end);
  *s = Trim(s->substr(end));
  return word;
}

}  // namespace

void ScriptParser::OpenBlockOf(OpenBlock block) {
  if (open_.size() == kMaxBlockDepth)
    Error(statement_, StrCat("blocks are nested more than ", kMaxBlockDepth, " deep"));
  block.range = statement_;
  block.outer_region = scope_->region;
  open_.push_back(std::move(block));
}

bool ScriptParser::EnterRegion() {
  Function& f = function();
  f.regions.push_back({scope_->region});
  scope_->region = static_cast<uint32_t>(f.regions.size() - 1);
  f.region_starts.emplace_back(Here(), scope_->region);
  return true;
}

void ScriptParser::LeaveRegion(uint32_t region) {
  scope_->region = region;
  function().region_starts.emplace_back(Here(), region);
}

bool ScriptParser::BlockKeyword(const Token& word, bool* known) {
  *known = true;
  if (word.text == "no_grad" || word.text == "autocast" || word.text == "scope" || word.text == "compile") {
    return OpenGuard(word);
  }
  if (word.text == "repeat" || word.text == "for" || word.text == "while") return OpenLoop(word);
  if (word.text == "if") return OpenIf(word);
  if (word.text == "elif" || word.text == "else") return Otherwise(word);
  if (word.text == "capture") return OpenCapture(word);
  if (word.text == "def") return OpenFunction(word);
  if (word.text == "return") return Return(word);
  if (word.text == "break" || word.text == "continue") return LeaveLoop(word);
  if (word.text == "end") return CloseBlock(word);
  *known = false;
  return false;
}

bool ScriptParser::OpenCompile(const Token& word, Block* block) {
  std::string_view rest = RestOfLine();
  block->kind = Block::Kind::kCompile;
  block->name = std::string(TakeWord(&rest));
  if (block->name.empty()) return Error(statement_, "expected the name of a compiled region");
  constexpr std::string_view kLimit = "max_different_graphs=";
  while (!rest.empty()) {
    const std::string_view option = TakeWord(&rest);
    int64_t n = 0;
    if (option == "full_graph") {
      block->full_graph = true;
    } else if (option.starts_with(kLimit) &&
               std::from_chars(option.data() + kLimit.size(), option.data() + option.size(), n).ptr ==
                   option.data() + option.size() &&
               n > 0) {
      block->max_different_graphs = n;
    } else {
      return Error(RangeOf(option), "expected `full_graph` or `max_different_graphs=N`");
    }
  }
  at_ = EndOfLine(text_, word.end);
  return true;
}

bool ScriptParser::OpenGuard(const Token& word) {
  Block block;
  bool ok = true;
  if (word.text == "no_grad") {
    ok = EndOfStatement("no_grad");
  } else if (word.text == "autocast") {
    const std::string_view type = RestOfLine();
    block.kind = Block::Kind::kAutocast;
    block.type = type == "f16" ? ElementType::kF16 : ElementType::kBF16;
    if (type != "bf16" && type != "f16") ok = Error(statement_, "expected bf16 or f16");
    at_ = EndOfLine(text_, at_);
  } else if (word.text == "scope") {
    block.kind = Block::Kind::kScope;
    block.name = std::string(RestOfLine());
    if (block.name.empty()) ok = Error(statement_, "expected the name of a scope");
    at_ = EndOfLine(text_, at_);
  } else {
    ok = OpenCompile(word, &block);
  }
  program_.blocks.push_back(std::move(block));
  Emit(Code::kOpen, statement_, static_cast<uint32_t>(program_.blocks.size() - 1));
  OpenBlockOf({OpenBlock::Kind::kGuard});
  return ok;
}

bool ScriptParser::OpenLoop(const Token& word) {
  OpenBlock block{word.text == "while" ? OpenBlock::Kind::kWhile : OpenBlock::Kind::kFor};
  Function& f = function();
  Loop loop;
  loop.parent = scope_->loop;
  loop.depth = scope_->loop < 0 ? 1 : f.loops[static_cast<size_t>(scope_->loop)].depth + 1;
  f.variables.emplace_back();  // hidden
  loop.position = static_cast<uint32_t>(f.variables.size() - 1);
  scope_->variables.push_back({.assigned = true});
  f.loops.push_back(loop);
  block.loop = static_cast<int32_t>(f.loops.size() - 1);
  const auto number = static_cast<uint32_t>(block.loop);
  bool ok = true;
  Token index;
  if (word.text == "for") {
    index = Take();
    const Token in = Peek(false);
    if (index.kind != TokenKind::kVariable || !in.IsWord("in")) {
      ok = Error(statement_, "expected for %name in range(N), or in a list");
    } else {
      at_ = in.end;
    }
  }
  // The condition of `while` is in the loop.
  if (word.text == "while") {
    scope_->loop = block.loop;
    block.start = Here() - 1;  // kStatement
    EnterRegion();
  }
  SourceRange range = statement_;
  ok = ok &&
       (RestOfLine().empty() && word.text == "repeat" ? Error(statement_, "expected repeat N") : Expression(&range));
  scope_->loop = block.loop;
  const uint32_t outer = word.text == "while" ? f.regions[scope_->region].parent : scope_->region;
  if (word.text == "while") {
    block.exits.push_back(Emit(Code::kJumpIfFalse, range));
  } else {
    Emit(Code::kLoopBegin, range, number, word.text == "repeat" ? 1 : 0);
    EnterRegion();
    block.start = Emit(Code::kLoopNext, statement_, number);
    if (word.text == "for") {
      program_.targets.push_back({index.kind == TokenKind::kVariable ? Target(index.text) : loop.position});
      Emit(Code::kStore, index.range(), static_cast<uint32_t>(program_.targets.size() - 1));
    } else {
      Emit(Code::kPop, statement_);
    }
  }
  ok = ok && EndOfStatement("the loop's values");
  OpenBlockOf(std::move(block));
  open_.back().outer_region = outer;
  return ok;
}

bool ScriptParser::OpenIf(const Token&) {
  SourceRange range = statement_;
  const bool ok = Expression(&range) && EndOfStatement("the condition");
  OpenBlock block{OpenBlock::Kind::kIf};
  block.otherwise = Emit(Code::kJumpIfFalse, range);
  OpenBlockOf(std::move(block));
  EnterRegion();
  return ok;
}

bool ScriptParser::Otherwise(const Token& word) {
  if (open_.empty() || open_.back().kind != OpenBlock::Kind::kIf) {
    return ErrorAt(word, StrCat("`", word.text, "` without an `if`"));
  }
  // The statement's own marker is for the branch: the branch before it jumps over it.
  function().code.pop_back();
  OpenBlock& block = open_.back();
  block.exits.push_back(Emit(Code::kJump, statement_));
  Patch(block.otherwise);
  block.otherwise = kNoJump;
  LeaveRegion(block.outer_region);
  Emit(Code::kStatement, statement_, line_);
  if (word.text == "else") {
    open_.back().kind = OpenBlock::Kind::kElse;
    EnterRegion();
    return EndOfStatement("else");
  }
  SourceRange range = statement_;
  const bool ok = Expression(&range) && EndOfStatement("the condition");
  open_.back().otherwise = Emit(Code::kJumpIfFalse, range);
  EnterRegion();
  return ok;
}

bool ScriptParser::OpenCapture(const Token& word) {
  std::string_view rest = RestOfLine();
  Capture capture;
  capture.function = scope_->function;
  capture.name = std::string(TakeWord(&rest));
  capture.full_graph = rest == "full_graph";
  OpenBlock block{OpenBlock::Kind::kCapture};
  block.capture = static_cast<uint32_t>(program_.captures.size());
  Emit(Code::kCapture, statement_, block.capture);
  capture.begin = Here();
  bool ok = true;
  if (in_capture_) ok = Error(statement_, "a capture inside of a capture");
  if (capture.name.empty()) ok = Error(statement_, "expected the name of a capture");
  if (!rest.empty() && !capture.full_graph) ok = Error(RangeOf(rest), "expected `full_graph` or nothing");
  program_.captures.push_back(std::move(capture));
  in_capture_ = true;
  at_ = EndOfLine(text_, word.end);
  OpenBlockOf(std::move(block));
  return ok;
}

// Parses (%a, %b=1).
bool ScriptParser::ParameterList(Function* made) {
  Token token = Take(false);
  if (!token.Is("(")) return ErrorAt(token, "expected the parameters of the function, (%a, %b=1)");
  token = Take();
  while (!token.Is(")")) {
    if (token.kind != TokenKind::kVariable) return ErrorAt(token, "expected a parameter, %name");
    if (made->signature.parameters.size() == kMaxParameters) {
      return ErrorAt(token, StrCat("a function has at most ", kMaxParameters, " parameters"));
    }
    Parameter parameter;
    parameter.name = std::string(token.text.substr(1));
    if (made->signature.Find(parameter.name) >= 0) {
      return ErrorAt(token, StrCat("duplicate parameter `", token.text, "`"));
    }
    const Token name = token;
    token = Take(false);
    if (token.Is("=")) {
      // A constant: code that makes one value, which is not kept.
      const size_t before = function().code.size();
      if (!Expression()) return false;
      const Instruction& last = function().code.back();
      if (last.code != Code::kConstant || function().code.size() != before + 1 ||
          program_.constants[last.a].get<Value::Word>() != nullptr) {
        return Error(last.range, "the default of a parameter is a number, a string, true, false or none");
      }
      parameter.has_default = true;
      parameter.default_value = program_.constants[last.a];
      function().code.pop_back();
      token = Take(false);
    } else if (!made->signature.parameters.empty() && made->signature.parameters.back().has_default) {
      return ErrorAt(name, "a parameter without a default after one that has a default");
    }
    made->signature.parameters.push_back(std::move(parameter));
    if (token.Is(",")) {
      token = Take();
    } else if (!token.Is(")")) {
      return ErrorAt(token, "expected `,` or `)`");
    }
  }
  return EndOfStatement("the parameters");
}

bool ScriptParser::OpenFunction(const Token&) {
  const Token name = Peek();
  bool ok = true;
  Function made;
  if (!open_.empty() || scopes_.size() > 1) ok = Error(statement_, "a function inside of a block");
  if (name.kind != TokenKind::kName || name.text.find_first_of(":.") != std::string_view::npos) {
    ok = ErrorAt(name, "expected the name of a function");
  } else {
    at_ = name.end;
    made.signature.name = std::string(name.text);
    made.name_range = name.range();
    if (FindNative(name.text) != nullptr || name.text == "grad" || name.text == "item" || name.text == "hash" ||
        name.text == "tensor") {
      ok = ErrorAt(name, StrCat("`", name.text, "` is a function of the language"));
    }
    if (IsStatementName(name.text)) ok = ErrorAt(name, StrCat("`", name.text, "` is a statement of the language"));
    if (function_numbers_.contains(made.signature.name)) {
      ok = ErrorAt(name, StrCat("redefinition of function `", name.text, "`"));
    }
    ok = ParameterList(&made) && ok;
  }
  // No code outside of the function.
  function().code.pop_back();
  OpenBlock block{OpenBlock::Kind::kFunction};
  block.has_scope = scopes_.size() == 1;
  OpenBlockOf(block);
  if (!block.has_scope) return ok;
  Scope scope;
  scope.function = program_.functions.size();
  function_numbers_.try_emplace(made.signature.name, scope.function);
  program_.functions.push_back(std::move(made));
  scopes_.push_back(std::move(scope));
  scope_ = &scopes_.back();
  const std::vector<Parameter> parameters = function().signature.parameters;
  for (const Parameter& parameter : parameters) Target(StrCat("%", parameter.name));
  return ok;
}

bool ScriptParser::CloseGuards(bool (*stop)(const OpenBlock&), OpenBlock** to) {
  *to = nullptr;
  size_t i = open_.size();
  while (i > 0 && !stop(open_[i - 1])) {
    --i;
    if (open_[i].kind == OpenBlock::Kind::kCapture || open_[i].kind == OpenBlock::Kind::kFunction) return false;
  }
  if (i == 0) return true;
  *to = &open_[i - 1];
  const auto guards = std::count_if(open_.begin() + static_cast<std::ptrdiff_t>(i), open_.end(),
                                    [](const OpenBlock& b) { return b.kind == OpenBlock::Kind::kGuard; });
  if (guards > 0) Emit(Code::kClose, statement_, static_cast<uint32_t>(guards));
  return true;
}

bool ScriptParser::Return(const Token& word) {
  if (scopes_.size() == 1) return ErrorAt(word, "`return` outside of a function");
  if (in_capture_) return ErrorAt(word, "`return` inside of a capture");
  uint32_t count = 0;
  if (Peek().kind != TokenKind::kEnd && !ValueList(&count)) return false;
  OpenBlock* to = nullptr;
  CloseGuards([](const OpenBlock& b) { return b.kind == OpenBlock::Kind::kFunction; }, &to);
  Emit(Code::kReturn, statement_, count);
  return EndOfStatement("the values");
}

bool ScriptParser::LeaveLoop(const Token& word) {
  OpenBlock* loop = nullptr;
  const bool found = CloseGuards(
      [](const OpenBlock& b) { return b.kind == OpenBlock::Kind::kFor || b.kind == OpenBlock::Kind::kWhile; }, &loop);
  if (!found || loop == nullptr) return ErrorAt(word, StrCat("`", word.text, "` outside of a loop"));
  const uint32_t jump = Emit(Code::kJump, statement_, loop->start);
  if (word.text == "break") loop->exits.push_back(jump);
  return EndOfStatement(word.text);
}

bool ScriptParser::CloseBlock(const Token&) {
  const bool ok = EndOfStatement("end");
  if (open_.empty()) return Error(statement_, "`end` without a block");
  const OpenBlock block = std::move(open_.back());
  open_.pop_back();
  switch (block.kind) {
    case OpenBlock::Kind::kGuard:
      Emit(Code::kClose, statement_, 1);
      break;
    case OpenBlock::Kind::kIf:
    case OpenBlock::Kind::kElse:
      // The marker of this statement stays, as the end of both branches.
      function().code.pop_back();
      if (block.otherwise != kNoJump) Patch(block.otherwise);
      for (uint32_t jump : block.exits) Patch(jump);
      LeaveRegion(block.outer_region);
      break;
    case OpenBlock::Kind::kFor:
    case OpenBlock::Kind::kWhile: {
      function().code.pop_back();
      Emit(Code::kJump, statement_, block.start);
      for (uint32_t jump : block.exits) Patch(jump);
      if (block.kind == OpenBlock::Kind::kFor) function().code[block.start].b = Here();
      LeaveRegion(block.outer_region);
      Emit(Code::kLoopEnd, statement_, static_cast<uint32_t>(block.loop));
      scope_->loop = function().loops[static_cast<size_t>(block.loop)].parent;
      break;
    }
    case OpenBlock::Kind::kCapture:
      function().code.pop_back();
      program_.captures[block.capture].end = Here();
      in_capture_ = false;
      break;
    case OpenBlock::Kind::kFunction:
      if (!block.has_scope) break;
      Emit(Code::kReturn, statement_, 0);
      FinishScope();
      scopes_.pop_back();
      scope_ = &scopes_.back();
      break;
  }
  return ok;
}

}  // namespace hlokit::lazy::script
