// SPDX-License-Identifier: Apache-2.0
// Scripts: variables, assignments, calls of ops.
#include <charconv>
#include <optional>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "parser/core/parser.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/deterministic_init.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/graph/string_split.h"
#include "tracer/script/script_runner.h"
#include "tracer/step/device_state.h"
#include "tracer/text/literal_line.h"

namespace hlokit::lazy {

bool ScriptRunner::Variable(std::string_view name, Tensor* t) {
  const auto it = name.starts_with("%") ? index_.find(std::string(name)) : index_.end();
  if (it == index_.end()) {
    std::vector<std::string_view> known;
    for (const auto& v : variables_) known.push_back(v.first);
    return Error(name, StrCat("undefined variable `", name, "`"), DidYouMean(name, known));
  }
  *t = variables_[it->second].second;
  if (!t->defined()) return Error(name, StrCat("`", name, "` has no value"));
  return true;
}

bool ScriptRunner::Variables(std::string_view names, Tensors* tensors) {
  for (std::string_view name : SplitTopLevel(names)) {
    Tensor t;
    if (!Variable(name, &t)) return false;
    tensors->push_back(std::move(t));
  }
  return true;
}

bool ScriptRunner::Argument(const ArgSpec& spec, std::string_view text, IValue* value) {
  if (text == "none" && spec.optional) return true;
  if (spec.type == ArgType::kTensor) {
    Tensor t;
    if (!Variable(text, &t)) return false;
    *value = std::move(t);
    return true;
  }
  if (spec.type == ArgType::kTensorList) {
    if (text.size() < 2 || text.front() != '[' || text.back() != ']') return Error(text, "expected a list, [%a, %b]");
    Tensors list;
    for (std::string_view member : SplitTopLevel(text.substr(1, text.size() - 2))) {
      Tensor t;
      if (member != "none" && !Variable(member, &t)) return false;
      list.push_back(std::move(t));
    }
    *value = std::move(list);
    return true;
  }
  absl::StatusOr<IValue> parsed = ParseArgument(spec, text);
  if (!parsed.ok()) return Error(text, std::string(parsed.status().message()));
  *value = *std::move(parsed);
  return true;
}

namespace {

// A written argument, and its position in the schema.
struct WrittenArgument {
  int at = -1;  // -1: unknown name, or too many positional arguments
  bool by_name = false;
  std::string_view name;
  std::string_view text;
};

// An overload and its written arguments.
struct WrittenCall {
  Op op;
  std::vector<WrittenArgument> arguments;
  int missing = -1;  // the first missing required argument
};

WrittenCall Match(Op op, absl::Span<const std::string_view> texts) {
  const Schema& schema = SchemaOf(op);
  WrittenCall call{op, {}};
  std::vector<bool> given(schema.args.size(), false);
  for (size_t i = 0; i < texts.size(); ++i) {
    WrittenArgument written;
    written.text = texts[i];
    const size_t eq = texts[i].find('=');
    if (eq != std::string_view::npos && texts[i].front() != '"' && texts[i].front() != '[') {
      written.by_name = true;
      written.name = Trim(texts[i].substr(0, eq));
      written.text = Trim(texts[i].substr(eq + 1));
      written.at = schema.Find(written.name);
    } else if (static_cast<int>(i) < schema.positional) {
      written.at = static_cast<int>(i);
    }
    if (written.at >= 0) given[static_cast<size_t>(written.at)] = true;
    call.arguments.push_back(written);
  }
  for (size_t i = 0; i < given.size() && call.missing < 0; ++i) {
    if (!given[i] && !schema.args[i].has_default && !schema.args[i].optional) call.missing = static_cast<int>(i);
  }
  return call;
}

// Returns true if the arguments match this overload: tensors for tensors, and all required ones.
bool Fits(const WrittenCall& call) {
  for (const WrittenArgument& written : call.arguments) {
    if (written.at < 0) return false;
    const ArgSpec& spec = SchemaOf(call.op).args[static_cast<size_t>(written.at)];
    if (written.text == "none") {
      if (!spec.optional) return false;
      continue;
    }
    const bool tensor = written.text.starts_with('%');
    if (tensor != (spec.type == ArgType::kTensor)) return false;
    if (tensor) continue;
    if (spec.type == ArgType::kTensorList ? !written.text.starts_with('[') : !ParseArgument(spec, written.text).ok()) {
      return false;
    }
  }
  return call.missing < 0;
}

}  // namespace

bool ScriptRunner::CallOp(std::string_view call, Outputs* outputs) {
  const size_t open = call.find('(');
  if (open == std::string_view::npos || call.back() != ')') {
    return Error(call, "expected a call, aten::name(arguments)");
  }
  const std::string_view name = Trim(call.substr(0, open));
  const std::vector<std::string_view> texts = SplitTopLevel(call.substr(open + 1, call.size() - open - 2));
  for (std::string_view text : texts) {
    if (text.empty()) return Error(call, "an argument is empty");
  }
  // An op's name, or that of an op with a trailing `_` removed.
  std::optional<WrittenCall> written;
  bool in_place = false;
  for (bool stripped : {false, true}) {
    std::string base(name);
    if (stripped) {
      const size_t dot = std::min(base.find('.'), base.size());
      if (dot == 0 || base[dot - 1] != '_') break;
      base.erase(dot - 1, 1);
    }
    std::vector<Op> candidates = Overloads(base);
    if (candidates.empty()) {
      if (const std::optional<Op> exact = FindOp(base)) candidates = {*exact};
    }
    for (Op candidate : candidates) {
      WrittenCall match = Match(candidate, texts);
      const bool fits = Fits(match);
      if (fits || !written) written = std::move(match);  // no match: the first overload, for its error
      if (fits) break;
    }
    if (written) {
      in_place = stripped;
      break;
    }
  }
  if (!written) {
    return Error(name, StrCat("unknown op `", name, "`", DidYouMeanOp(name)));
  }
  const Schema& schema = SchemaOf(written->op);
  Args args(schema.args.size());
  std::vector<bool> given(schema.args.size(), false);
  for (const WrittenArgument& argument : written->arguments) {
    if (argument.at < 0 && argument.by_name) {
      return Error(argument.name, StrCat("unknown argument `", argument.name, "` of ", schema.full_name()));
    }
  }
  for (const WrittenArgument& argument : written->arguments) {
    if (argument.at < 0) {
      return Error(argument.text,
                   StrCat(schema.full_name(), " takes ", schema.positional, " arguments without a name"));
    }
    const size_t at = static_cast<size_t>(argument.at);
    if (given[at]) return Error(argument.text, StrCat("duplicate argument `", schema.args[at].name, "`"));
    given[at] = true;
    if (!Argument(schema.args[at], argument.text, &args[at])) return false;
  }
  if (written->missing >= 0) {
    const ArgSpec& missing = schema.args[static_cast<size_t>(written->missing)];
    return Error(call, StrCat(schema.full_name(), ": missing argument `", missing.name, "`"));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i]) args[i] = schema.args[i].default_value;
  }
  const IValue self = args.empty() ? IValue() : args[0];
  *outputs = Dispatch(written->op, std::move(args));
  if (!CheckStatus(call)) return false;
  if (in_place) {
    const Tensor* target = self.get<Tensor>();
    if (target == nullptr) return Error(call, "missing tensor to write to");
    WriteInPlace(*target, (*outputs)[0]);
    *outputs = Outputs{*target};
    return CheckStatus(call);
  }
  return true;
}

bool ScriptRunner::Assignment(std::string_view names, std::string_view value) {
  const std::vector<std::string_view> targets = SplitTopLevel(names);
  for (std::string_view target : targets) {
    if (target.size() < 2 || target.front() != '%') return Error(target, "expected a variable, %name");
  }
  std::string_view rest = value;
  const std::string_view word = TakeWord(&rest);
  Outputs outputs;
  if (word == "tensor") {
    std::optional<Literal> literal = ReadLiteralLine(source_, rest, &tracer_.device()->context(), &sink_);
    if (!literal) return false;
    outputs.push_back(tracer_.FromLiteral(*std::move(literal)));
  } else if (word == "hash") {
    std::string_view numbers = rest;
    const std::string_view shape_text = TakeWord(&numbers);
    absl::StatusOr<Shape> shape = ParseShapeText(shape_text, &tracer_.device()->context());
    uint32_t k = 0;
    const auto [end, error] = std::from_chars(numbers.data(), numbers.data() + numbers.size(), k);
    if (shape.ok() && shape->IsArray() && hlokit::ByteSize(*shape) > (int64_t{1} << 32)) {
      return Error(shape_text, "values of scripts have at most 4 GiB");
    }
    if (!shape.ok() || !shape->IsArray() || shape->element_count() < 0 || error != std::errc() ||
        end != numbers.data() + numbers.size()) {
      return Error(rest, "expected a shape and a number, hash f32[2,3] 0");
    }
    Literal literal = Literal::Zeros(*shape);
    const size_t width = static_cast<size_t>(BytesOf(shape->element_type()));
    for (int64_t i = 0; i < shape->element_count(); ++i) {
      StoreScalar(shape->element_type(), HashedValue(k, static_cast<uint32_t>(i)),
                  literal.data() + static_cast<size_t>(i) * width);
    }
    outputs.push_back(tracer_.FromLiteral(std::move(literal)));
  } else if (word == "grad") {
    Tensor t;
    if (!Variable(rest, &t)) return false;
    if (!t.grad().defined()) return Error(rest, StrCat("`", rest, "` has no gradient"));
    outputs.push_back(t.grad());
  } else if (word.starts_with("%")) {
    Tensor t;
    if (!Variable(word, &t)) return false;
    outputs.push_back(t);
  } else if (!CallOp(value, &outputs)) {
    return false;
  }
  if (targets.size() > outputs.size()) {
    return Error(names, StrCat(targets.size(), " names for ", outputs.size(), " results"));
  }
  for (size_t i = 0; i < targets.size(); ++i) Assign(targets[i], outputs[i]);
  return true;
}

}  // namespace hlokit::lazy
