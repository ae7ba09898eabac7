// SPDX-License-Identifier: Apache-2.0
#include "tracer/script/script_parser.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "tracer/graph/string_split.h"

namespace hlokit::lazy::script {

bool ScriptParser::Error(SourceRange range, std::string message, std::string hint) {
  sink_.Error(DiagnosticKind::kUnexpectedToken, range, std::move(message), std::move(hint));
  return false;
}

uint32_t ScriptParser::Emit(Code code, SourceRange range, uint32_t a, uint32_t b) {
  function().code.push_back({code, a, b, range});
  return Here() - 1;
}

uint32_t ScriptParser::Constant(Value value) {
  program_.constants.push_back(std::move(value));
  return static_cast<uint32_t>(program_.constants.size() - 1);
}

uint32_t ScriptParser::VariableNumber(std::string_view name) {
  const auto next = static_cast<uint32_t>(function().variables.size());
  const auto [it, fresh] = scope_->numbers.try_emplace(std::string(name), next);
  if (fresh) {
    function().variables.emplace_back(name);
    scope_->variables.push_back({});
  }
  return it->second;
}

// Widens the loop of the variable to one that has this mention too.
void ScriptParser::Mention(uint32_t number) {
  Variable& variable = scope_->variables[number];
  const std::vector<Loop>& loops = function().loops;
  if (!std::exchange(variable.mentioned, true)) {
    variable.loop = scope_->loop;
    return;
  }
  int32_t a = variable.loop, b = scope_->loop;
  const auto depth = [&](int32_t loop) { return loop < 0 ? 0 : loops[static_cast<size_t>(loop)].depth; };
  while (a != b) (depth(a) >= depth(b) ? a : b) = loops[static_cast<size_t>(depth(a) >= depth(b) ? a : b)].parent;
  variable.loop = a;
}

std::vector<std::string_view> ScriptParser::VariableNames() const {
  std::vector<std::string_view> names;
  const std::vector<std::string>& variables = program_.functions[scope_->function].variables;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].empty() && scope_->variables[i].assigned) names.push_back(variables[i]);
  }
  return names;
}

bool ScriptParser::Load(const Token& token) {
  const auto found = scope_->numbers.find(std::string(token.text));
  if (found == scope_->numbers.end() && scope_->loop < 0) {
    std::string hint = DidYouMean(token.text, VariableNames());
    if (scopes_.size() > 1 && scopes_[0].numbers.contains(std::string(token.text))) {
      hint = "a function has its own variables: pass it as an argument";
    }
    sink_.Error(DiagnosticKind::kUndefinedOperand, token.range(), StrCat("undefined variable `", token.text, "`"),
                std::move(hint));
    // Reported once.
    scope_->variables[VariableNumber(token.text)].assigned = true;
    PushOperand(token.range());
    return true;
  }
  const uint32_t number = VariableNumber(token.text);
  Variable& variable = scope_->variables[number];
  if (!variable.assigned && !variable.mentioned) variable.first_read = token.range();
  Mention(number);
  Emit(Code::kLoad, token.range(), number);
  PushOperand(token.range());
  return true;
}

uint32_t ScriptParser::Target(std::string_view name) {
  const uint32_t number = VariableNumber(name);
  scope_->variables[number].assigned = true;
  Mention(number);
  return number;
}

void ScriptParser::FinishScope() {
  Function& f = function();
  for (size_t i = 0; i < scope_->variables.size(); ++i) {
    const Variable& variable = scope_->variables[i];
    if (variable.mentioned && !variable.assigned) {
      sink_.Error(DiagnosticKind::kUndefinedOperand, variable.first_read,
                  StrCat("undefined variable `", f.variables[i], "`"), DidYouMean(f.variables[i], VariableNames()));
    }
    if (variable.mentioned && variable.loop >= 0) {
      f.loops[static_cast<size_t>(variable.loop)].variables.push_back(static_cast<uint32_t>(i));
    }
  }
  for (Loop& loop : f.loops) loop.variables.push_back(loop.position);
}

bool AssignArguments(const Signature& signature, const CallSite& call, std::vector<size_t>* places,
                     const std::function<void(SourceRange, std::string, std::string)>& report) {
  bool ok = true;
  const auto error = [&](SourceRange range, std::string message, std::string hint = "") {
    report(range, std::move(message), std::move(hint));
    ok = false;
  };
  const std::vector<Parameter>& parameters = signature.parameters;
  std::vector<uint8_t> given(parameters.size(), 0);
  places->clear();
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const CallArgument& argument = call.arguments[i];
    size_t place = i;
    if (!argument.name.empty()) {
      const int named = signature.Find(argument.name);
      if (named < 0) {
        std::vector<std::string_view> names;
        for (const Parameter& p : parameters) names.push_back(p.name);
        error(argument.name_range, StrCat("unknown argument `", argument.name, "` of ", signature.name),
              DidYouMean(argument.name, names));
      }
      place = named < 0 ? parameters.size() : static_cast<size_t>(named);
    } else if (place >= parameters.size() && signature.variadic) {
      place = parameters.size() - 1;
    } else if (place >= parameters.size()) {
      error(argument.range,
            StrCat(signature.name, " takes ", parameters.size(), parameters.size() == 1 ? " argument" : " arguments"));
    }
    places->push_back(place);
    if (place >= parameters.size()) continue;
    const bool several = signature.variadic && place + 1 == parameters.size();
    if (std::exchange(given[place], 1) != 0 && !several) {
      error(argument.range, StrCat("duplicate argument `", parameters[place].name, "`"));
    }
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool needed = !parameters[i].has_default && !(signature.variadic && i + 1 == parameters.size());
    if (given[i] == 0 && needed) {
      error(call.range, StrCat(signature.name, ": missing argument `", parameters[i].name, "`"));
    }
  }
  return ok;
}

void ScriptParser::ResolveCall(CallSite* call) {
  if (call->name.empty()) return;  // of a value
  const auto assign = [&](const Signature& signature) {
    AssignArguments(signature, *call, &call->places, [&](SourceRange range, std::string message, std::string hint) {
      Error(range, std::move(message), std::move(hint));
    });
  };
  if (const auto found = function_numbers_.find(call->name); found != function_numbers_.end()) {
    call->kind = CallSite::Kind::kFunction;
    call->function = found->second;
    return assign(program_.functions[found->second].signature);
  }
  if (const NativeFunction* native = FindNative(call->name)) {
    call->kind = CallSite::Kind::kNative;
    call->native = native;
    return assign(native->signature);
  }
  const size_t colons = call->name.find("::");
  if (colons == std::string::npos || IsNativePrefix(std::string_view(call->name).substr(0, colons))) {
    std::vector<std::string_view> names;
    for (const NativeFunction& f : NativeFunctions()) names.push_back(f.signature.name);
    for (const Function& f : program_.functions) {
      if (!f.signature.name.empty()) names.push_back(f.signature.name);
    }
    const std::string aten = StrCat("aten::", call->name);
    std::string hint = DidYouMean(call->name, names);
    if (colons == std::string::npos && hint.empty() && !Overloads(aten).empty())
      hint = StrCat("did you mean `", aten, "`?");
    Error(call->name_range, StrCat("unknown function `", call->name, "`"), std::move(hint));
    return;
  }
  // An op's name, or that of an op with a trailing `_` removed.
  call->kind = CallSite::Kind::kOp;
  for (bool stripped : {false, true}) {
    std::string base = call->name;
    if (stripped) {
      const size_t dot = std::min(base.find('.'), base.size());
      if (dot == 0 || base[dot - 1] != '_') break;
      base.erase(dot - 1, 1);
    }
    call->ops = Overloads(base);
    if (call->ops.empty()) {
      if (const std::optional<Op> exact = FindOp(base)) call->ops = {*exact};
    }
    call->in_place = stripped;
    if (!call->ops.empty()) return;
  }
  Error(call->name_range, StrCat("unknown op `", call->name, "`", DidYouMeanOp(call->name)));
}

void ScriptParser::ResolveCalls() {
  for (CallSite& call : program_.calls) {
    if (sink_.limit_reached()) return;
    ResolveCall(&call);
  }
}

bool ScriptParser::Parse() {
  program_.functions.emplace_back();
  scopes_.reserve(2);
  scopes_.emplace_back();
  scope_ = &scopes_.back();
  bool ok = true;
  while (at_ <= text_.size() && !sink_.limit_reached()) {
    const Token first = Peek();
    at_ = first.begin;
    if (first.kind != TokenKind::kEnd) {
      const size_t end = EndOfLine(text_, at_);
      const std::string_view line = Trim(text_.substr(at_, end - at_));
      statement_ = RangeOf(line);
      Emit(Code::kStatement, statement_, line_);
      const bool in_capture = !open_.empty() && open_.back().kind == OpenBlock::Kind::kCapture;
      const size_t blocks = open_.size();
      const uint32_t begin = Here() - 1;
      ok = Statement(first) && ok;
      brackets_.clear();
      statements_before_ = true;
      if (in_capture && open_.size() == blocks && open_.back().kind == OpenBlock::Kind::kCapture) {
        program_.captures[open_.back().capture].statements.emplace_back(begin, Here());
      }
    }
    at_ = EndOfLine(text_, at_) + 1;
    line_ += static_cast<uint32_t>(
        std::count(text_.begin() + static_cast<std::ptrdiff_t>(std::min(line_start_, text_.size())),
                   text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size())), '\n'));
    line_start_ = at_;
  }
  for (const OpenBlock& block : open_) ok = Error(block.range, "missing `end` of the block");
  while (scopes_.size() > 1) {
    FinishScope();
    scopes_.pop_back();
    scope_ = &scopes_.back();
  }
  FinishScope();
  ResolveCalls();
  return ok && !sink_.has_errors();
}

bool ParseProgram(const SourceBuffer& source, ScriptProgram* program, DiagnosticSink* sink) {
  if (!ScriptParser(source, program, sink).Parse()) return false;
  PlanCaptures(program);
  return true;
}

}  // namespace hlokit::lazy::script
