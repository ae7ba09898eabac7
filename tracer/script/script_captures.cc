// SPDX-License-Identifier: Apache-2.0
// Captured blocks of scripts: their parts are captured functions of the tensors that they read.
//
// What a part does depends on more than tensors: numbers and settings of objects in the variables that it reads guard
// its graphs. Numbers that it assigns are those of the trace with the same guards; a part that assigns objects, such as
// modules, is traced at every call.
#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <iterator>
#include <utility>

#include "ir/core/str_cat.h"
#include "tracer/script/script_runner.h"

namespace hlokit::lazy::script {
namespace {

// Different states of a part whose results are kept.
constexpr size_t kMaxResults = 256;

// Kinds of values in a state.
enum class StateKind : uint64_t { kTensor, kBool, kInteger, kFloat, kText, kList, kObject, kNone, kUnset };

// Appends the size and the bytes of a text.
void AppendText(std::string_view text, std::vector<uint64_t>* state) {
  state->push_back(text.size());
  for (; !text.empty(); text.remove_prefix(std::min<size_t>(text.size(), 8))) {
    uint64_t word = 0;
    std::memcpy(&word, text.data(), std::min<size_t>(text.size(), 8));
    state->push_back(word);
  }
}

// Appends what a value is besides values of tensors; appends its tensors.
void AppendState(const Value& value, std::vector<uint64_t>* state, Tensors* tensors) {
  const auto begin = [&](StateKind kind) { state->push_back(static_cast<uint64_t>(kind)); };
  std::vector<const Value*> open = {&value};
  while (!open.empty()) {
    const Value& v = *open.back();
    open.pop_back();
    if (const Tensor* t = v.get<Tensor>()) {
      begin(StateKind::kTensor);
      tensors->push_back(*t);
      state->push_back(static_cast<uint64_t>(t->dtype()));
      state->push_back(t->sizes().size());
      for (int64_t size : t->sizes()) state->push_back(static_cast<uint64_t>(size));
    } else if (const Scalar* number = v.get<Scalar>()) {
      begin(number->is_float()                      ? StateKind::kFloat
            : number->kind() == Scalar::Kind::kBool ? StateKind::kBool
                                                    : StateKind::kInteger);
      // By bits: 0 and -0 differ, and a NaN is equal to itself.
      state->push_back(number->is_float() ? std::bit_cast<uint64_t>(number->ToDouble())
                                          : static_cast<uint64_t>(number->ToInt()));
    } else if (const std::string* text = TextOf(v)) {
      begin(StateKind::kText);
      AppendText(*text, state);
    } else if (v.list() != nullptr) {
      const std::vector<Value>& members = v.list()->values;
      begin(StateKind::kList);
      state->push_back(members.size());
      for (size_t i = members.size(); i-- > 0;) open.push_back(&members[i]);
    } else if (const auto* object = v.get<std::shared_ptr<Object>>()) {
      begin(StateKind::kObject);
      (*object)->AppendState(state);
    } else {
      begin(v.none() ? StateKind::kNone : StateKind::kUnset);
    }
  }
}

// Returns true if the value has neither tensors nor objects.
bool IsPlain(const Value& value) {
  std::vector<const Value*> open = {&value};
  while (!open.empty()) {
    const Value& v = *open.back();
    open.pop_back();
    if (v.get<Tensor>() != nullptr || v.get<std::shared_ptr<Object>>() != nullptr) return false;
    if (v.list() == nullptr) continue;
    for (const Value& member : v.list()->values) open.push_back(&member);
  }
  return true;
}

}  // namespace

std::vector<uint64_t> ScriptRunner::StateOf(const Capture::Part& part, Tensors* arguments) {
  std::vector<uint64_t> state;
  for (uint32_t variable : part.reads) AppendState(frame().variables[variable], &state, arguments);
  return state;
}

// Runs the statements of a part. Returns the tensors that they assigned.
Tensors ScriptRunner::TracePart(CapturedPart* traced) {
  const Capture::Part& part = *traced->part;
  std::vector<OpenBlock> outer;
  outer.swap(frame().blocks);
  frame().lines.emplace_back();
  assigned_.clear();
  tracing_ = traced;
  tracing_frame_ = frames_.size();
  frame().next = part.begin;
  bool ok = false;
  {
    // The call of the captured function lets the other devices run.
    if (context_.turn != nullptr) context_.turn->lock();
    ok = Execute(frames_.size(), part.end);
    if (context_.turn != nullptr) context_.turn->unlock();
  }
  tracing_ = nullptr;
  Tensors tensors;
  if (!ok) return tensors;
  frame().lines.pop_back();
  frame().blocks.swap(outer);
  CapturedPart::Results results;
  std::sort(assigned_.begin(), assigned_.end());
  assigned_.erase(std::unique(assigned_.begin(), assigned_.end()), assigned_.end());
  for (uint32_t variable : assigned_) {
    const Value& value = frame().variables[variable];
    if (const Tensor* t = value.get<Tensor>()) {
      results.tensors.push_back(variable);
      tensors.push_back(*t);
    } else if (IsPlain(value)) {
      results.others.emplace_back(variable, value);
    } else {
      results.repeatable = false;
    }
  }
  traced->results[traced->state] = std::move(results);
  return tensors;
}

bool ScriptRunner::RunPart(size_t capture, size_t number, SourceRange range) {
  const Capture& block = program_.captures[capture];
  CapturedPart& part = captures_[{capture, number}];
  if (part.function == nullptr) {
    part.part = &block.parts[number];
    GraphCaptureOptions options;
    options.name = part.part->name;
    options.full_graph = block.full_graph;
    options.differentiable = program_.differentiates_outside;
    options.guarded_scalars = [&part] {
      std::vector<double> numbers;  // compared by bits
      for (uint64_t word : part.state) numbers.push_back(std::bit_cast<double>(word));
      return numbers;
    };
    part.function = std::make_unique<CapturedFunction>(
        &tracer_, [this, &part](const Tensors&) { return TracePart(&part); }, std::move(options));
  }
  Tensors arguments;
  part.state = StateOf(*part.part, &arguments);
  if (part.results.size() > kMaxResults) {
    part.results.clear();
    part.function->Forget();
  }
  // Erases variables that the part assigns anew, so that a replay may write to their buffers: those that it surely
  // assigns, and those that it assigned in the same state.
  for (uint32_t variable : part.part->renewed) frame().variables[variable] = Value();
  const auto last = part.results.find(part.state);
  if (last != part.results.end() && !part.part->runs_graphs) {
    for (uint32_t variable : last->second.tensors) {
      const std::vector<uint32_t>& reads = part.part->reads;
      const bool read = std::find(reads.begin(), reads.end(), variable) != reads.end();
      if (!read) frame().variables[variable] = Value();
    }
  }
  const size_t errors = sink_.error_count();
  const size_t frames = frames_.size();
  absl::StatusOr<Tensors> results = Tensors();
  {
    const OthersRun others(context_);
    results = (*part.function)(arguments);
  }
  arguments.clear();
  if (sink_.error_count() > errors || frames_.size() != frames) return false;
  if (!results.ok()) return Fail(range, results.status());
  const CapturedPart::Results& assigned = part.results[part.state];
  for (size_t k = 0; k < std::min(results->size(), assigned.tensors.size()); ++k) {
    frame().variables[assigned.tensors[k]] = Value(std::move((*results)[k]));
  }
  for (const auto& [variable, value] : assigned.others) frame().variables[variable] = value;
  if (!assigned.repeatable) part.function->Forget();
  return CheckStatus(range);
}

bool ScriptRunner::RunCapture(const Instruction& i) {
  const Capture& capture = program_.captures[i.a];
  if (tracing_ != nullptr) return Error(i.range, "a capture inside of a capture");
  for (size_t k = 0; k < capture.parts.size(); ++k) {
    const Capture::Part& part = capture.parts[k];
    if (part.captured) {
      if (!RunPart(i.a, k, i.range)) return false;
    } else {
      frame().lines.emplace_back();
      frame().next = part.begin;
      if (!Execute(frames_.size(), part.end)) return false;
      frame().lines.pop_back();
    }
  }
  frame().next = capture.end;
  return true;
}

std::string ScriptRunner::CaptureReport() const {
  std::string out;
  for (const auto& [place, part] : captures_) out += part.function->Report();
  return out;
}

}  // namespace hlokit::lazy::script
