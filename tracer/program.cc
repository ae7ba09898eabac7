#include "tracer/program.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "ir/literal_text.h"
#include "ir/printer.h"
#include "ir/str_cat.h"
#include "ir/suggest.h"
#include "parser/parser.h"
#include "tracer/autograd/function.h"
#include "tracer/capture.h"
#include "tracer/compile_region.h"
#include "tracer/device_state.h"
#include "tracer/dispatch.h"
#include "tracer/execution_log.h"
#include "tracer/executor.h"
#include "tracer/functions.h"
#include "tracer/hash_numbers.h"
#include "tracer/literal_scalar.h"
#include "tracer/schema.h"
#include "tracer/text/literal_line.h"
#include "tracer/text/pieces.h"

namespace hlokit::lazy {
namespace {

bool IsNameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

// Cuts the first word off.
std::string_view TakeWord(std::string_view* s) {
  *s = Trim(*s);
  const size_t end = std::min(s->find_first_of(" \t"), s->size());
  const std::string_view word = s->substr(0, end);
  *s = Trim(s->substr(end));
  return word;
}

struct Block {
  enum Kind { kNoGrad, kScope, kRepeat, kCompile } kind;
  size_t line = 0;   // of the statement that opened it
  int64_t left = 0;  // of a repeat: times after this one
  std::unique_ptr<GradMode> grad_mode;
  std::unique_ptr<ScopedTrace> scope;
  std::unique_ptr<CompileRegion> region;
};

// A capture block: what it reads from before, what it leaves, and the function that its lines are.
struct CaptureBlock {
  std::vector<std::string_view> arguments;
  std::vector<std::string> results;
  std::unique_ptr<CapturedFunction> function;
};

const std::vector<std::string_view> kBlockWords = {"no_grad", "scope", "repeat", "compile", "capture"};

bool OpensBlock(std::string_view line) {
  const std::string_view word = TakeWord(&line);
  return std::find(kBlockWords.begin(), kBlockWords.end(), word) != kBlockWords.end();
}

class Runner {
 public:
  Runner(const SourceBuffer& source, Tracer& tracer, const ProgramOptions& options, TextWriter& out,
         DiagnosticSink* sink)
      : source_(source), tracer_(tracer), options_(options), out_(out), sink_(*sink) {}

  bool Run(ProgramResult* result);

 private:
  bool Error(std::string_view at, std::string message, std::string hint = "") {
    sink_.Error(DiagnosticKind::kEvaluation,
                {static_cast<uint32_t>(at.data() - source_.text().data()), static_cast<uint32_t>(at.size())},
                std::move(message), std::move(hint));
    return false;
  }
  bool Statement(std::string_view line);
  bool Assignment(std::string_view names, std::string_view value);
  bool CallOp(std::string_view call, Outputs* outputs);
  bool Variable(std::string_view name, Tensor* t);
  bool Variables(std::string_view names, Tensors* tensors);
  bool Argument(const ArgSpec& spec, std::string_view text, Value* value);
  bool Fits(Op op, absl::Span<const std::string_view> args);
  bool Dump(std::string_view kind, std::string_view names, std::string_view at);
  bool Open(std::string_view line, std::string_view word, std::string_view rest, size_t at);
  bool Close(std::string_view at, size_t* next);
  bool RunLines(size_t begin, size_t end);
  bool Capture(std::string_view line, std::string_view rest, size_t at, size_t* next);
  std::vector<std::string_view> ReadBeforeWritten(size_t begin, size_t end) const;
  std::string CaptureReport() const;
  void Assign(std::string_view name, Tensor t) {
    if (assigned_ != nullptr && std::find(assigned_->begin(), assigned_->end(), name) == assigned_->end()) {
      assigned_->emplace_back(name);
    }
    const auto [it, fresh] = index_.try_emplace(std::string(name), variables_.size());
    if (fresh) variables_.emplace_back(std::string(name), Tensor());
    variables_[it->second].second = std::move(t);
  }
  // Errors that ops left behind belong to the statement.
  bool CheckStatus(std::string_view at) {
    const absl::Status s = tracer_.status();
    if (s.ok()) return true;
    tracer_.ClearStatus();
    return Error(at, std::string(s.message()));
  }

  const SourceBuffer& source_;
  Tracer& tracer_;
  const ProgramOptions& options_;
  TextWriter& out_;
  DiagnosticSink& sink_;
  std::vector<std::pair<std::string, Tensor>> variables_;
  absl::flat_hash_map<std::string, size_t> index_;
  std::vector<std::string_view> lines_;
  std::vector<Block> blocks_;
  int64_t statements_ = 0;                                           // run so far
  std::map<std::string, std::unique_ptr<ShapeDetector>> detectors_;  // of compile blocks, by name
  std::map<size_t, CaptureBlock> captures_;                          // by line
  std::vector<std::string>* assigned_ = nullptr;                     // names, while a capture block is traced
};

bool Runner::Variable(std::string_view name, Tensor* t) {
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

bool Runner::Variables(std::string_view names, Tensors* tensors) {
  for (std::string_view name : SplitTop(names)) {
    Tensor t;
    if (!Variable(name, &t)) return false;
    tensors->push_back(std::move(t));
  }
  return true;
}

bool Runner::Argument(const ArgSpec& spec, std::string_view text, Value* value) {
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
bool Runner::Fits(Op op, absl::Span<const std::string_view> args) {
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

bool Runner::CallOp(std::string_view call, Outputs* outputs) {
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

bool Runner::Assignment(std::string_view names, std::string_view value) {
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

bool Runner::Dump(std::string_view kind, std::string_view names, std::string_view at) {
  Tensors tensors;
  if (names.empty()) {
    for (const auto& v : variables_) {
      if (v.second.defined()) tensors.push_back(v.second);
    }
  } else if (!Variables(names, &tensors)) {
    return false;
  }
  if (kind == "lazy") {
    out_ << TensorsText(tensors, options_.text);
    return true;
  }
  if (kind == "lazy-dot") {
    out_ << TensorsDot(tensors, options_.text);
    return true;
  }
  if (kind == "metrics") {
    tracer_.PublishCounters();
    out_ << tracer_.metrics().Report();
    return true;
  }
  if (kind == "graphs") {
    out_ << GraphReport(tracer_.executions().executions()) << CaptureReport();
    return true;
  }
  DeviceState& device = *CurrentDevice();
  std::lock_guard<std::recursive_mutex> lock(device.mutex());
  const GraphSlice slice = SliceOfTensors(tensors);
  if (kind == "hash") {
    out_ << ToString(HashOf(device, slice, {})) << "\n";
    return true;
  }
  if (kind != "hlo")
    return Error(at, StrCat("`", kind, "` cannot be dumped"), "lazy, lazy-dot, hlo, hash, metrics or graphs");
  absl::StatusOr<std::unique_ptr<Module>> module = LowerSlice(device, slice, "IrToHlo.1");
  if (!module.ok()) return Error(at, std::string(module.status().message()));
  PrintModule(out_, **module);
  out_ << "\n";
  return true;
}

bool Runner::Statement(std::string_view line) {
  // `=` that is no part of an argument.
  const size_t paren = std::min(line.find('('), line.size());
  if (line.front() == '%') {
    const size_t eq = line.substr(0, paren).find('=');
    if (eq == std::string_view::npos) return Error(line, "expected `%name = value`");
    return Assignment(Trim(line.substr(0, eq)), Trim(line.substr(eq + 1)));
  }
  if (line.find("::") < paren) {
    Outputs outputs;
    return CallOp(line, &outputs);
  }
  std::string_view rest = line;
  const std::string_view word = TakeWord(&rest);
  if (word == "requires_grad") {
    Tensors tensors;
    if (!Variables(rest, &tensors)) return false;
    for (Tensor& t : tensors) {
      if (!t.is_leaf()) return Error(rest, "you can only change requires_grad flags of leaf variables.");
      t.set_requires_grad(true);
    }
    return true;
  }
  if (word == "backward") {
    const std::string_view name = TakeWord(&rest);
    Tensor t;
    if (!Variable(name, &t)) return false;
    if (!rest.empty() && rest != "retain_graph") return Error(rest, "expected `retain_graph` or nothing");
    if (absl::Status s = t.Backward(Tensor(), !rest.empty()); !s.ok()) return Error(line, std::string(s.message()));
    return CheckStatus(line);
  }
  if (word == "zero_grad") {
    Tensors tensors;
    if (!Variables(rest, &tensors)) return false;
    for (const Tensor& t : tensors) t.set_grad(Tensor());
    return true;
  }
  if (word == "del") {
    for (std::string_view name : SplitTop(rest)) {
      Tensor t;
      if (!Variable(name, &t)) return false;
      variables_[index_[std::string(name)]].second = Tensor();
    }
    return true;
  }
  if (word == "mark_step") {
    if (absl::Status s = tracer_.MarkStep(); !s.ok()) return Error(line, std::string(s.message()));
    return true;
  }
  if (word == "wait") {
    if (absl::Status s = tracer_.Wait(); !s.ok()) return Error(line, std::string(s.message()));
    return true;
  }
  if (word == "print" || word == "item") {
    Tensor t;
    if (!Variable(rest, &t)) return false;
    if (word == "item") {
      absl::StatusOr<Scalar> value = t.Item();
      if (!value.ok()) return Error(line, std::string(value.status().message()));
      Literal literal = FilledLiteral(tracer_.device()->ScalarShape(t.dtype()), *value);
      out_ << rest << " = ";
      PrintLiteral(out_, literal);
      out_ << "\n";
      return true;
    }
    absl::StatusOr<Literal> value = t.ToLiteral();
    if (!value.ok()) return Error(line, std::string(value.status().message()));
    LiteralTextOptions text;
    text.with_shape = true;
    text.with_layout = false;
    out_ << rest << " = ";
    PrintLiteral(out_, *value, text);
    out_ << "\n";
    return true;
  }
  if (word == "dump") {
    const std::string_view kind = TakeWord(&rest);
    return Dump(kind, rest, line);
  }
  static const std::vector<std::string_view> kWords = {"requires_grad", "backward", "zero_grad", "del",     "mark_step",
                                                       "wait",          "print",    "item",      "dump",    "scope",
                                                       "no_grad",       "repeat",   "compile",   "capture", "end"};
  return Error(word, StrCat("`", word, "` is no statement"), Suggestion(word, kWords));
}

bool Runner::Close(std::string_view at, size_t* next) {
  if (blocks_.empty()) return Error(at, "`end` without a block");
  Block& block = blocks_.back();
  if (block.kind == Block::kCompile) {
    const absl::Status s = block.region->End();
    blocks_.pop_back();
    return s.ok() || Error(at, std::string(s.message()));
  }
  if (block.kind == Block::kRepeat && block.left > 0) {
    --block.left;
    *next = block.line + 1;
    return true;
  }
  blocks_.pop_back();
  return true;
}

bool Runner::Open(std::string_view line, std::string_view word, std::string_view rest, size_t at) {
  if (blocks_.size() >= 1000) return Error(line, "blocks are nested too deeply");
  Block block;
  block.line = at;
  if (word == "no_grad") {
    block.kind = Block::kNoGrad;
    block.grad_mode = std::make_unique<GradMode>(false);
  } else if (word == "scope") {
    block.kind = Block::kScope;
    if (rest.empty()) return Error(line, "a scope needs a name");
    block.scope = std::make_unique<ScopedTrace>(rest);
  } else if (word == "repeat") {
    block.kind = Block::kRepeat;
    int64_t n = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), n);
    if (error != std::errc() || end != rest.data() + rest.size() || n < 1) return Error(line, "expected repeat N");
    block.left = n - 1;
  } else {
    block.kind = Block::kCompile;
    RegionOptions region;
    region.name = TakeWord(&rest);
    if (region.name.empty()) return Error(line, "a compiled region needs a name");
    ShapeDetector* detector = nullptr;
    while (!rest.empty()) {
      const std::string_view option = TakeWord(&rest);
      int64_t n = 0;
      if (option == "full_graph") {
        region.full_graph = true;
      } else if (option.starts_with("max_graphs=") &&
                 std::from_chars(option.data() + 11, option.data() + option.size(), n).ptr ==
                     option.data() + option.size() &&
                 n > 0) {
        std::unique_ptr<ShapeDetector>& known = detectors_[region.name];
        if (known == nullptr) known = std::make_unique<ShapeDetector>(n);
        detector = known.get();
      } else {
        return Error(option, "expected `full_graph` or `max_graphs=N`");
      }
    }
    block.region = std::make_unique<CompileRegion>(&tracer_, std::move(region), detector);
  }
  blocks_.push_back(std::move(block));
  return true;
}

std::vector<std::string_view> Runner::ReadBeforeWritten(size_t begin, size_t end) const {
  std::vector<std::string_view> read, written;
  const auto visit = [](std::string_view text, const auto& fn) {
    for (size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
      size_t stop = at + 1;
      while (stop < text.size() && IsNameChar(text[stop])) ++stop;
      fn(text.substr(at, stop - at));
    }
  };
  for (size_t i = begin; i < end; ++i) {
    std::string_view line = lines_[i];
    if (line.empty() || line.front() == '#') continue;
    const size_t eq = line.front() == '%' ? line.substr(0, line.find('(')).find('=') : std::string_view::npos;
    const std::string_view targets = eq == std::string_view::npos ? "" : line.substr(0, eq);
    visit(line.substr(targets.size()), [&](std::string_view name) {
      if (std::find(written.begin(), written.end(), name) != written.end()) return;
      if (std::find(read.begin(), read.end(), name) == read.end()) read.push_back(name);
    });
    visit(targets, [&](std::string_view name) { written.push_back(name); });
  }
  return read;
}

bool Runner::Capture(std::string_view line, std::string_view rest, size_t at, size_t* next) {
  if (assigned_ != nullptr) return Error(line, "a capture inside of a capture");
  CaptureOptions options;
  options.name = TakeWord(&rest);
  if (options.name.empty()) return Error(line, "a capture needs a name");
  if (!rest.empty() && rest != "full_graph") return Error(rest, "expected `full_graph` or nothing");
  options.full_graph = !rest.empty();
  size_t end = at + 1;
  for (size_t depth = 1; end < lines_.size(); ++end) {
    if (OpensBlock(lines_[end])) ++depth;
    if (lines_[end] == "end" && --depth == 0) break;
  }
  if (end == lines_.size()) return Error(line, "the block has no `end`");
  CaptureBlock& block = captures_[at];
  if (block.function == nullptr) {
    block.arguments = ReadBeforeWritten(at + 1, end);
    block.function = std::make_unique<CapturedFunction>(
        &tracer_,
        [this, &block, at, end](const Tensors&) {
          std::vector<Block> outer;
          outer.swap(blocks_);
          block.results.clear();
          assigned_ = &block.results;
          Tensors results;
          if (RunLines(at + 1, end)) {
            for (const std::string& name : block.results) results.push_back(variables_[index_[name]].second);
          }
          assigned_ = nullptr;
          blocks_.swap(outer);
          return results;
        },
        std::move(options));
  }
  Tensors arguments;
  for (std::string_view name : block.arguments) {
    Tensor t;
    if (!Variable(name, &t)) return false;
    arguments.push_back(std::move(t));
  }
  // What the block assigned the last time and does not read is gone: the call makes it anew.
  for (const std::string& name : block.results) {
    const bool read = std::find(block.arguments.begin(), block.arguments.end(), name) != block.arguments.end();
    if (!read) variables_[index_[name]].second = Tensor();
  }
  const size_t errors = sink_.error_count();
  absl::StatusOr<Tensors> results = (*block.function)(arguments);
  if (sink_.error_count() > errors) return false;
  if (!results.ok()) return Error(line, std::string(results.status().message()));
  for (size_t i = 0; i < results->size(); ++i) Assign(block.results[i], (*results)[i]);
  *next = end + 1;
  return CheckStatus(line);
}

std::string Runner::CaptureReport() const {
  std::string out;
  for (const auto& [line, block] : captures_) out += block.function->Report();
  return out;
}

bool Runner::RunLines(size_t begin, size_t end) {
  for (size_t i = begin; i < end;) {
    const std::string_view line = lines_[i];
    size_t next = i + 1;
    if (line.empty() || line.front() == '#') {
      i = next;
      continue;
    }
    if (++statements_ > options_.max_statements) return Error(line, "the program runs too many statements");
    std::string_view rest = line;
    const std::string_view word = TakeWord(&rest);
    const ScopedFrame frame("<program>", source_.name(), static_cast<int>(i + 1));
    if (word == "capture") {
      if (!Capture(line, rest, i, &next)) return false;
    } else if (OpensBlock(line)) {
      if (!Open(line, word, rest, i)) return false;
    } else if (word == "end") {
      if (!Close(line, &next)) return false;
    } else if (!Statement(line)) {
      return false;
    }
    i = next;
  }
  if (!blocks_.empty()) return Error(lines_[blocks_.back().line], "the block has no `end`");
  return true;
}

bool Runner::Run(ProgramResult* result) {
  const std::string_view text = source_.text();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines_.push_back(Trim(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  const bool ok = RunLines(0, lines_.size());
  result->captures = CaptureReport();
  if (ok) result->variables = std::move(variables_);
  return ok;
}

}  // namespace

bool RunProgram(const SourceBuffer& source, Tracer& tracer, const ProgramOptions& options, TextWriter& out,
                ProgramResult* result, DiagnosticSink* sink) {
  Runner runner(source, tracer, options, out, sink);
  return runner.Run(result);
}

}  // namespace hlokit::lazy
