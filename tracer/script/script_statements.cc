// SPDX-License-Identifier: Apache-2.0
// Scripts: statements other than assignments and blocks.
#include <charconv>
#include <memory>
#include <mutex>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/text/literal_text.h"
#include "ir/text/printer.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/graph/string_split.h"
#include "tracer/script/script_runner.h"
#include "tracer/step/device_state.h"
#include "tracer/step/execution_log.h"
#include "tracer/step/executor.h"

namespace hlokit::lazy {

bool ScriptRunner::Dump(std::string_view kind, std::string_view names, std::string_view at) {
  Tensors tensors;
  if (names.empty()) {
    for (const auto& v : variables_) {
      if (v.second.defined()) tensors.push_back(v.second);
    }
  } else if (!Variables(names, &tensors)) {
    return false;
  }
  if (kind == "lazy") {
    out_ << TensorsToString(tensors, options_.text);
    return true;
  }
  if (kind == "lazy-dot") {
    out_ << TensorsDot(tensors, options_.text);
    return true;
  }
  if (kind == "metrics") {
    tracer_.client().StartDeferred();
    tracer_.PublishCounters();
    out_ << tracer_.metrics().Report();
    return true;
  }
  if (kind == "graphs") {
    out_ << GraphReport(tracer_.execution_log().executions()) << CaptureReport();
    return true;
  }
  DeviceState& device = *CurrentDevice();
  DeviceLock lock(device.mutex());
  const PendingSubgraph slice = CollectSubgraphOfTensors(tensors);
  if (kind == "hash") {
    out_ << ToString(HashOf(device, slice, {})) << "\n";
    return true;
  }
  if (kind != "hlo")
    return Error(at, StrCat("`", kind, "` cannot be dumped"), "lazy, lazy-dot, hlo, hash, metrics or graphs");
  absl::StatusOr<std::unique_ptr<Module>> module = LowerSubgraph(device, slice, "IrToHlo.1");
  if (!module.ok()) return Error(at, std::string(module.status().message()));
  PrintModule(out_, **module, PrintOptions::Lossless());
  out_ << "\n";
  return true;
}

bool ScriptRunner::Statement(std::string_view line) {
  // `=` outside of arguments.
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
      if (!IsFloat(t.dtype())) return Error(rest, "only Tensors of floating point dtype can require gradients");
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
    for (std::string_view name : SplitTopLevel(rest)) {
      Tensor t;
      if (!Variable(name, &t)) return false;
      variables_[index_[std::string(name)]].second = Tensor();
    }
    return true;
  }
  if ((word == "mark_step" || word == "wait") && !rest.empty())
    return Error(rest, StrCat("unexpected text after `", word, "`"));
  if (word == "mark_step") {
    if (absl::Status s = tracer_.MarkStep(); !s.ok()) return Error(line, std::string(s.message()));
    return true;
  }
  if (word == "wait") {
    if (absl::Status s = tracer_.Wait(); !s.ok()) return Error(line, std::string(s.message()));
    return true;
  }
  if (word == "manual_seed") {
    int64_t seed = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), seed);
    if (rest.empty() || error != std::errc() || end != rest.data() + rest.size()) {
      return Error(line, "expected manual_seed N");
    }
    if (assigned_ != nullptr) return Error(line, "a captured block uses the seed of the step; set it before the block");
    DeviceState& device = *CurrentDevice();
    DeviceLock lock(device.mutex());
    device.SetSeed(seed);
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
  static const std::vector<std::string_view> kWords = {
      "requires_grad", "backward", "zero_grad", "del",      "mark_step", "wait",    "manual_seed", "print", "item",
      "dump",          "scope",    "no_grad",   "autocast", "repeat",    "compile", "capture",     "end"};
  return Error(word, StrCat("unknown statement `", word, "`"), DidYouMean(word, kWords));
}

}  // namespace hlokit::lazy
