// Programs: variables, what is assigned to them, calls of ops.
#include <charconv>
#include <optional>

#include "ir/str_cat.h"
#include "ir/suggest.h"
#include "parser/parser.h"
#include "tracer/device_state.h"
#include "tracer/dispatch.h"
#include "tracer/hash_numbers.h"
#include "tracer/literal_scalar.h"
#include "tracer/program_runner.h"
#include "tracer/text/literal_line.h"
#include "tracer/text/pieces.h"

namespace hlokit::lazy {

bool ProgramRunner::Variable(std::string_view name, Tensor* t) {
  const auto it = name.starts_with("%") ? index_.find(std::string(name)) : index_.end();
  if (it == index_.end()) {
    std::vector<std::string_view> known;
    for (const auto& v : variables_) known.push_back(v.first);
    return Error(name, StrCat("there is no variable `", name, "`"), Suggestion(name, known));
  }
  *t = variables_[it->second].second;
  if (!t->defined()) return Error(name, StrCat("`", name, "` has no value"));
  return true;
}

bool ProgramRunner::Variables(std::string_view names, Tensors* tensors) {
  for (std::string_view name : SplitTop(names)) {
    Tensor t;
    if (!Variable(name, &t)) return false;
    tensors->push_back(std::move(t));
  }
  return true;
}

bool ProgramRunner::Argument(const ArgSpec& spec, std::string_view text, Value* value) {
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
    for (std::string_view member : SplitTop(text.substr(1, text.size() - 2))) {
      Tensor t;
      if (member != "none" && !Variable(member, &t)) return false;
      list.push_back(std::move(t));
    }
    *value = std::move(list);
    return true;
  }
  absl::StatusOr<Value> parsed = ParseArgument(spec, text);
  if (!parsed.ok()) return Error(text, std::string(parsed.status().message()));
  *value = *std::move(parsed);
  return true;
}

// Whether the arguments as written can be those of this overload: tensors where it takes tensors, and all it needs.
bool ProgramRunner::Fits(Op op, absl::Span<const std::string_view> args) {
  const Schema& schema = SchemaOf(op);
  std::vector<bool> given(schema.args.size(), false);
  for (size_t i = 0; i < args.size(); ++i) {
    std::string_view text = args[i];
    int at = static_cast<int>(i);
    const size_t eq = text.find('=');
    if (eq != std::string_view::npos && text.front() != '"' && text.front() != '[') {
      at = schema.Find(Trim(text.substr(0, eq)));
      text = Trim(text.substr(eq + 1));
    } else if (at >= schema.positional) {
      return false;
    }
    if (at < 0 || at >= static_cast<int>(schema.args.size())) return false;
    const ArgSpec& spec = schema.args[at];
    given[at] = true;
    if (text == "none") {
      if (!spec.optional) return false;
      continue;
    }
    const bool tensor = text.front() == '%';
    if (tensor != (spec.type == ArgType::kTensor)) return false;
    if (!tensor && spec.type == ArgType::kTensorList && text.front() != '[') return false;
    if (!tensor && spec.type != ArgType::kTensorList && !ParseArgument(spec, text).ok()) return false;
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i] && !schema.args[i].has_default && !schema.args[i].optional) return false;
  }
  return true;
}

bool ProgramRunner::CallOp(std::string_view call, Outputs* outputs) {
  const size_t open = call.find('(');
  if (open == std::string_view::npos || call.back() != ')') {
    return Error(call, "expected a call, aten::name(arguments)");
  }
  const std::string_view name = Trim(call.substr(0, open));
  const std::vector<std::string_view> texts = SplitTop(call.substr(open + 1, call.size() - open - 2));
  for (std::string_view text : texts) {
    if (text.empty()) return Error(call, "an argument is empty");
  }
  // A name that is an op as it stands, or with its writing in place taken away.
  std::optional<Op> op;
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
      if (!op && Fits(candidate, texts)) op = candidate;
    }
    if (!op && !candidates.empty()) op = candidates.front();
    if (op) {
      in_place = stripped;
      break;
    }
  }
  if (!op) {
    return Error(name, StrCat("there is no op `", name, "`", SuggestedOp(name)));
  }
  const Schema& schema = SchemaOf(*op);
  Args args(schema.args.size());
  std::vector<bool> given(schema.args.size(), false);
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string_view text = texts[i];
    int at = static_cast<int>(i);
    const size_t eq = text.find('=');
    if (eq != std::string_view::npos && text.front() != '"' && text.front() != '[') {
      const std::string_view key = Trim(text.substr(0, eq));
      at = schema.Find(key);
      if (at < 0) return Error(key, StrCat(schema.full_name(), " has no argument `", key, "`"));
      text = Trim(text.substr(eq + 1));
    } else if (at >= schema.positional) {
      return Error(text, StrCat(schema.full_name(), " takes ", schema.positional, " arguments without a name"));
    }
    if (given[at]) return Error(text, StrCat("argument ", schema.args[at].name, " is given twice"));
    given[at] = true;
    if (!Argument(schema.args[at], text, &args[at])) return false;
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i]) continue;
    if (!schema.args[i].has_default && !schema.args[i].optional) {
      return Error(call, StrCat(schema.full_name(), ": argument ", schema.args[i].name, " is missing"));
    }
    args[i] = schema.args[i].default_value;
  }
  const Value self = args.empty() ? Value() : args[0];
  *outputs = Dispatch(*op, std::move(args));
  if (!CheckStatus(call)) return false;
  if (in_place) {
    const Tensor* target = self.get<Tensor>();
    if (target == nullptr) return Error(call, "there is no tensor to write to");
    WriteInPlace(*target, (*outputs)[0]);
    *outputs = Outputs{*target};
    return CheckStatus(call);
  }
  return true;
}

bool ProgramRunner::Assignment(std::string_view names, std::string_view value) {
  const std::vector<std::string_view> targets = SplitTop(names);
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
    if (!shape.ok() || !shape->IsArray() || shape->element_count() < 0 || shape->element_count() > (int64_t{1} << 30) ||
        error != std::errc() || end != numbers.data() + numbers.size()) {
      return Error(rest, "expected a shape and a number, hash f32[2,3] 0");
    }
    Literal literal = Literal::Zeros(*shape);
    const size_t width = static_cast<size_t>(BytesOf(shape->element_type()));
    for (int64_t i = 0; i < shape->element_count(); ++i) {
      StoreScalar(shape->element_type(), HashNumber(k, static_cast<uint32_t>(i)),
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
